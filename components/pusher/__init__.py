"""The Pusher: publishes a blessed model as a version that is there whole or not at all."""
