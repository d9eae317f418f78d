// The OpenAI SDK for JavaScript: Chat Completions and Responses, with its own accumulators.
import OpenAI from 'openai';
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { report } from './findings.mjs';

const Place = z.object({ city: z.string(), people: z.number() });
const schema = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
};
const weather = { name: 'weather', description: 'What the weather is', parameters: schema };
const messages = [{ role: 'user', content: 'hello' }];

const sdk = (address, key) =>
  new OpenAI({ baseURL: address + '/v1', apiKey: key, maxRetries: 0 });

function chat(address, key) {
  const completions = sdk(address, key).chat.completions;
  const tools = [{ type: 'function', function: weather }];
  const used = (usage) => [usage.prompt_tokens, usage.completion_tokens];
  const called = (answer) =>
    answer.choices[0].message.tool_calls.map((call) => [
      call.function.name,
      JSON.parse(call.function.arguments),
    ]);
  return {
    async plain() {
      const answer = await completions.create({ model: 'chat', messages });
      return [answer.choices[0].message.content, used(answer.usage)];
    },
    async listen(hear) {
      for await (const chunk of await completions.create({
        model: 'chat',
        messages,
        stream: true,
      })) {
        const piece = chunk.choices[0]?.delta?.content;
        if (piece) hear(piece);
      }
    },
    async stream() {
      const pieces = [];
      const runner = completions
        .stream({ model: 'chat', messages, stream_options: { include_usage: true } })
        .on('content', (piece) => piece && pieces.push(piece));
      const final = await runner.finalChatCompletion();
      return [pieces, final.choices[0].message.content, used(final.usage)];
    },
    async tools() {
      return called(await completions.create({ model: 'chat', messages, tools }));
    },
    async streamedTools() {
      const runner = completions.stream({ model: 'chat', messages, tools });
      return called(await runner.finalChatCompletion());
    },
    async structured() {
      const answer = await completions.parse({
        model: 'chat',
        messages,
        response_format: zodResponseFormat(Place, 'place'),
      });
      return answer.choices[0].message.parsed;
    },
  };
}

function responses(address, key) {
  const door = sdk(address, key).responses;
  const ask = { model: 'chat', input: 'hello' };
  const tools = [{ type: 'function', strict: false, ...weather }];
  const used = (usage) => [usage.input_tokens, usage.output_tokens];
  const called = (answer) =>
    answer.output
      .filter((item) => item.type === 'function_call')
      .map((call) => [call.name, JSON.parse(call.arguments)]);
  return {
    async plain() {
      const answer = await door.create(ask);
      return [answer.output_text, used(answer.usage)];
    },
    async listen(hear) {
      for await (const event of await door.create({ ...ask, stream: true })) {
        if (event.type === 'response.output_text.delta') hear(event.delta);
      }
    },
    async stream() {
      const pieces = [];
      const runner = door
        .stream(ask)
        .on('response.output_text.delta', (event) => pieces.push(event.delta));
      const final = await runner.finalResponse();
      return [pieces, final.output_text, used(final.usage)];
    },
    async tools() {
      return called(await door.create({ ...ask, tools }));
    },
    async streamedTools() {
      return called(await door.stream({ ...ask, tools }).finalResponse());
    },
    async structured() {
      const answer = await door.parse({ ...ask, text: { format: zodTextFormat(Place, 'place') } });
      return answer.output_parsed;
    },
  };
}

await report({ 'openai-node': chat, 'openai-node responses': responses });
