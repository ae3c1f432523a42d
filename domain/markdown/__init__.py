"""Markdown read line by line: the one place that knows frontmatter, headings, fences, code spans and links.

lines        a text as lines, with the character offset of each
scanner      lines -> spans (headings, fences, tables, HTML and indented code), in document order
openers      what a line may begin, looked at by itself
headings     a heading's words
frontmatter  the leading YAML block and its values
titles       a document's title and names
inline       code spans and links of a paragraph, on demand
"""
