"""What each route does, over the public methods of a loop."""
