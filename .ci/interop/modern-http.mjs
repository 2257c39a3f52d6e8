// A modern MCP server over HTTP written with the npm SDK, for the interoperability tests. It says on standard output
// where it is and what became of its calls, and ends with its standard input.
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import * as z from 'zod';

const say = (text) => ({ content: [{ type: 'text', text }] });
const inHeader = (name) => ({ 'x-mcp-header': name });
let grown = false;
let place = 'Place';

const handler = createMcpHandler(() => {
  const server = new McpServer(
    { name: 'interop-modern-http', version: '1.0.0' },
    { capabilities: { tools: { listChanged: true } } },
  );
  server.registerTool(
    'shout',
    { description: 'Say it louder.', inputSchema: z.object({ text: z.string() }) },
    async ({ text }) => say(text.toUpperCase()),
  );
  server.registerTool(
    'weigh',
    {
      description: 'Weigh something; where, how much and whether also stand in headers.',
      inputSchema: z.object({
        place: z.string().meta(inHeader(place)),
        grams: z.int().optional().meta(inHeader('Grams')),
        fresh: z.boolean().optional().meta(inHeader('Fresh')),
        note: z.string().optional(),
      }),
    },
    async (of) => say(`${of.place} ${of.grams} ${of.fresh}`),
  );
  server.registerTool(
    'count',
    { description: 'Count up to a number.', inputSchema: z.object({ to: z.int() }) },
    async ({ to }, ctx) => {
      for (let progress = 1; progress <= to; progress++) {
        await ctx.mcpReq.notify({
          method: 'notifications/progress',
          params: { progressToken: ctx.mcpReq._meta.progressToken, progress, total: to },
        });
      }
      return say(`counted to ${to}`);
    },
  );
  server.registerTool('wait', { description: 'Wait until it is given up.', inputSchema: z.object({}) }, async (_, ctx) => {
    console.log('waiting');
    await new Promise((resolve) => ctx.mcpReq.signal.addEventListener('abort', resolve));
    console.log('given up');
    return say('nobody reads this');
  });
  server.registerTool('relabel', { description: 'Ask for another header, unannounced.', inputSchema: z.object({}) }, async () => {
    place = 'Town';
    return say('relabelled');
  });
  server.registerTool('grow', { description: 'Have one tool more.', inputSchema: z.object({}) }, async () => {
    grown = true;
    handler.notify.toolsChanged();
    return say('grown');
  });
  if (grown) {
    server.registerTool('added', { description: 'The tool more.', inputSchema: z.object({}) }, async () => say('here'));
  }
  return server;
}, { legacy: 'reject' });

const http = createServer(toNodeHandler(handler));
http.listen(0, '127.0.0.1', () => console.log(`at http://127.0.0.1:${http.address().port}/mcp`));
process.stdin.on('end', () => process.exit(0)).resume();
