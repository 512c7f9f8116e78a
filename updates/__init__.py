"""``newsembed update``: one step of a growing archive: crawl, extract, clean, embed, index, events."""
