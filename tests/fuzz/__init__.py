"""Random bodies, calls, states and histories, a few of each in CI: `HINGED_FUZZ` asks for more.

With the usual number of examples these tests find, planted one at a time: a status that the
OpenAPI does not have; a guard whose loss makes a 500; an array that is refused but learned, ids
that are forgotten; a chain that is not compared, a trim beyond a follower; a digest that is not
looked at; a line or a tensor of a wrong size that is taken; an error of a file that gets out.
"""
