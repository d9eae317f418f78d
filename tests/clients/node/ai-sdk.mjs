// The AI SDK with its OpenAI-compatible provider: generateText, streamText, tools, objects.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, Output, streamText, tool } from 'ai';
import { z } from 'zod';
import { report } from './findings.mjs';

const weather = tool({
  description: 'What the weather is',
  inputSchema: z.object({ city: z.string() }),
});
const used = (usage) => [usage.inputTokens, usage.outputTokens];
const called = (calls) => calls.map((call) => [call.toolName, call.input]);

function chat(address, key) {
  const provider = createOpenAICompatible({
    name: 'understudy',
    baseURL: address + '/v1',
    apiKey: key,
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
  // Without this streamText prints errors and goes on; here they are thrown.
  const quiet = { onError: () => {} };
  const ask = { model: provider('chat'), prompt: 'hello', maxRetries: 0 };
  return {
    async plain() {
      const answer = await generateText(ask);
      return [answer.text, used(answer.usage)];
    },
    async listen(hear) {
      for await (const part of streamText({ ...ask, ...quiet }).fullStream) {
        if (part.type === 'text-delta') hear(part.text);
        if (part.type === 'error') throw part.error;
        if (part.type === 'finish') return part.finishReason;
      }
    },
    async stream() {
      const pieces = [];
      const result = streamText({ ...ask, ...quiet });
      for await (const piece of result.textStream) pieces.push(piece);
      return [pieces, await result.text, used(await result.usage)];
    },
    async tools() {
      const answer = await generateText({ ...ask, tools: { weather } });
      return called(answer.toolCalls);
    },
    async streamedTools() {
      const result = streamText({ ...ask, ...quiet, tools: { weather } });
      await result.consumeStream();
      return called(await result.toolCalls);
    },
    async structured() {
      const schema = z.object({ city: z.string(), people: z.number() });
      const answer = await generateText({ ...ask, output: Output.object({ schema }) });
      return answer.output;
    },
  };
}

await report({ 'ai-sdk': chat });
