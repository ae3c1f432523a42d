"""Markdown read line by line: the one place that knows frontmatter, headings, fences, code spans and links.

source             line ends
scanner            text -> spans (headings, fences, tables, HTML and indented code), in document order
containers         its state between two lines: open quotes, list items and paragraphs
openers            what a line may begin, looked at by itself
spans              what it yields, and the clock that it looks at
headings           a heading's words
frontmatter        the leading YAML block and its values
frontmatter_plain  the part of YAML that nearly all blocks keep to
titles             a document's title and names
inline             code spans and links of a paragraph, on demand
borders            where a text that is too long may be cut
scripts            which texts are written without blanks
"""
