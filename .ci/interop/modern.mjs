// A modern MCP server written with the npm SDK, for the interoperability tests.
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';

serveStdio(() => {
  const server = new McpServer({ name: 'interop-modern', version: '1.0.0' });
  server.registerTool(
    'shout',
    { description: 'Say it louder.', inputSchema: z.object({ text: z.string() }) },
    async ({ text }) => ({ content: [{ type: 'text', text: text.toUpperCase() }] }),
  );
  return server;
});
