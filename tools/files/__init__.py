"""The workspace: files beneath one folder, opened without a race, edited to the byte."""
