"""Models in the formats of others: exports of linear models, imports of trained ones.

All of it runs where the command runs, never in the service.
"""
