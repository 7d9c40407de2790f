package enginetest

var historyTests []test
