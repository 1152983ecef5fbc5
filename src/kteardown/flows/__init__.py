"""What a verb asks for: a question goes in, an answer comes out. Nothing here reads a command
line."""
