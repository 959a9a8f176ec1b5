"""Objects that consoles make to show a folder: no files of a version."""

from types import SimpleNamespace

from components.pusher.publish_to_bucket import files_of


def test_empty_object_that_shows_a_folder_is_no_file_of_the_version():
    seen = {
        name: SimpleNamespace(size_bytes=size)
        for name, size in {"3/": 0, "3/variables/": 0, "3/saved_model.pb": 7, "3/empty": 0, "33/x": 1}.items()
    }
    assert list(files_of(seen, 3)) == ["saved_model.pb", "empty"]


def test_object_with_content_is_told_whatever_its_name():
    assert list(files_of({"3/odd/": SimpleNamespace(size_bytes=1)}, 3)) == ["odd/"]
