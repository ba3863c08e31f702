"""What people look at: pictures, moving pictures, the viewer in a browser, the command line."""
