"""Messages: the types of every request and answer; the OpenAPI document is made from them."""
