// What every client here is asked, in the order the scripted model answers. Addresses come in on
// stdin, findings go out as JSON.
import { text } from 'node:stream/consumers';

export async function raised(ask) {
  try {
    return ['nothing', JSON.stringify(await ask())];
  } catch (error) {
    return [error.constructor.name, String(error.message)];
  }
}

export async function findings(places, client) {
  const at = (place, key = 'key') => client(places[place], places[key]);
  const checks = async (place) => {
    const it = at(place);
    return {
      plain: await it.plain(),
      stream: await it.stream(),
      tools: await it.tools(),
      'streamed tools': await it.streamedTools(),
      structured: await it.structured(),
    };
  };
  const heard = [];
  const broken = await raised(() => at('cut').listen((piece) => heard.push(piece)));
  return {
    relayed: await checks('relayed'),
    translated: await checks('translated'),
    'wrong key': await raised(() => at('relayed', 'wrong').plain()),
    exhausted: await raised(() => at('exhausted').plain()),
    limited: await raised(() => at('limited').plain()),
    cut: [heard.join(''), ...broken],
  };
}

export async function report(clients) {
  const asked = JSON.parse(await text(process.stdin));
  const told = {};
  for (const [name, places] of Object.entries(asked)) {
    told[name] = await findings(places, clients[name]);
  }
  process.stdout.write(JSON.stringify(told));
}
