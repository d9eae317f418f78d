"""Where shared buckets lie in Redis, and the script that fills, charges and portions them.

A bucket that is not there is full. Time is the server's own, so hosts need not agree on it. The
first part of a bucket's name is the deployment's, in braces as everywhere: one node has them all.
"""

from __future__ import annotations

from collections.abc import Iterable

from understudy.share.limits_lease import Claim

# Half of what is there at most, so that the next who asks finds something too; whole ones only,
# because a part of a request lets nobody in. Two texts for each key: the portion, what is left.
TAKE = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local told = {}
for n, key in ipairs(KEYS) do
  local rate, back, over, wanted = unpack(ARGV, 4 * n - 3, 4 * n)
  local most = math.max(1, rate)
  local kept = redis.call('HMGET', key, 'level', 'at')
  local level, at = tonumber(kept[1]) or most, tonumber(kept[2]) or now
  level = math.min(most, level + math.max(0, now - at) * rate + back - over)
  local portion = 0
  if level >= 1 then portion = math.min(wanted, math.max(1, math.floor(level / 2))) end
  level = level - portion
  redis.call('HSET', key, 'level', string.format('%.6f', level), 'at', string.format('%.6f', now))
  local full = math.min(86400 * 30, (most - level) / rate)
  redis.call('PEXPIRE', key, math.ceil((full + 60) * 1000))
  told[2 * n - 1] = string.format('%.6f', portion)
  told[2 * n] = string.format('%.6f', level)
end
return told
"""


def bucket_of(name: str, kind: str, label: str) -> str:
    return f"understudy:{{{name}}}:limit:{kind}:{label}"


def arguments(claims: Iterable[Claim]) -> list[str]:
    return [
        repr(number)
        for claim in claims
        for number in (claim.rate, claim.back, claim.over, claim.wanted)
    ]
