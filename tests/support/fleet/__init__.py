"""Fleets of workers under faults, and what must hold all the same.

One harness with plugs: `faults` says what goes wrong, `senders` and `load` have clients send
events until they are acknowledged, `chaos` has all of it happen at random, `balance` and `served`
compare log, workers and snapshot with a plain fold.
"""
