"""What there is to see of a study: one file a view, with its numbers, its pictures and its words.

A view makes plain values of a ``StudyState`` and blocks of these (``blocks``); ``drawing`` has the tools for pictures.
Page, report, Markdown, notebook and files all show the one list of views in ``every``. Nothing here changes anything.
"""
