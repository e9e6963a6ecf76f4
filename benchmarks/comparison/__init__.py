"""This library beside its peers, in the order of a run.

What is asked (`problems`), of whom (`libraries`), how a call is timed (`measuring`) in a process
of its own (`worker`), the four sections of a run (`sections`), how far from the truth the answers
are (`judging`), and how it is all printed (`tables`). ``../compare.py`` is the command.
"""
