-- Answers the clock and the settings of a shard, '' for none.
tick()
return {us, raw, settings() and call('HGET', META, 'settings') or ''}
