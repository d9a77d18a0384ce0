"""What every request passes: authentication, limits, errors; and the OpenAPI document."""
