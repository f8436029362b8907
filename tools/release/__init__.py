"""What a release is put through before anybody installs it."""
