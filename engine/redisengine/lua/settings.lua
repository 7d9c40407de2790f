-- Tells the settings that a shard has: answers the clock and them, '' for none.
tick()
return {us, raw, call('HGET', META, 'settings') or ''}
