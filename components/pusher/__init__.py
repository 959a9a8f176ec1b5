"""The Pusher: publishes a blessed model as a version, completely or not at all."""
