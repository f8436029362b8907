"""What there is to see of a study: the numbers of each view, and their drawing. Nothing here changes anything.

``subject`` is what is looked at; each view is a module that makes plain values of it; ``drawing`` makes pictures of
those. Page, report, notebook and terminal all show the same views.
"""
