"""What requests and answers look like, as msgspec types; the OpenAPI document is made from them.

`messages` are the types, `options` turns declarations into options of a loop. May import the
library below the service, and nothing of the service.
"""
