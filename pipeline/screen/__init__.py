"""What a run says on the screen."""
