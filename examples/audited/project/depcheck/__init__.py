"""Should you depend on this library?"""
