"""What a scheduled program looks like to a cost model: numbers, as many for every program."""
