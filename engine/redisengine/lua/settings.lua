-- Tells the settings that a shard has: answers the clock and them, '' for none.
tick()
return {us, raw, settings() and call('HGET', META, 'settings') or ''}
