"""Where a deployment's facts lie in Redis: one key each, with an end, and an index of them.

The braces make a hash tag: in a cluster all keys of a deployment lie on one node.
"""

from __future__ import annotations

import msgspec

from understudy.share.message import Message, encode
from understudy.share.notes import KEPT

FOREVER = 30 * 86_400.0  # seconds; what has no end is told anew before that, or forgotten
READ_MOST = 1000  # facts read by a newcomer, those that last longest

# Told and kept, unless it is known: when many come back at once, each fact is told only once.
# A full server refuses to keep; then it is told all the same.
KEEP = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('PUBLISH', ARGV[1], ARGV[2])
local kept = redis.pcall('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
if kept['err'] then return kept end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
redis.call('ZADD', KEYS[2], now + ARGV[3], KEYS[1])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return 1
"""

# The keys of what is kept, each with the milliseconds it still will be.
FIND = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local most = ARGV[1]
local found = redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', now, 'WITHSCORES', 'LIMIT', 0, most)
for place = 2, #found, 2 do found[place] = tonumber(found[place]) - now end
return found
"""


def channel_of(name: str) -> str:
    return f"understudy:{{{name}}}:events"


def index_of(name: str) -> str:
    return f"understudy:{{{name}}}:benches"


def key_of(name: str, message: Message) -> str:
    return f"understudy:{{{name}}}:bench:{message.key}:{message.stamp}:{message.origin}"


def milliseconds(message: Message) -> int:
    """How long a fact is kept: somewhat longer than it matters, like everywhere."""
    left = FOREVER if message.left is None else message.left + KEPT
    return int(min(left, FOREVER) * 1000)


def aged(message: Message, remaining: int) -> bytes:
    """A fact as it is now, from what was kept and the milliseconds for which it still will be."""
    past = max(0.0, (milliseconds(message) - remaining) / 1000)
    left, head = message.left, message.head
    if left is not None:
        head = max(0.0, head - max(0.0, past - left))
        left = max(0.0, left - past)
    now = msgspec.structs.replace(message, left=left, head=head, age=message.age + past, sent=None)
    return encode(now)
