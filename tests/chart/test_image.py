# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Where the image comes from, and the version in it."""

from chart import defaults, table, value

DIGEST = "sha256:" + "0123456789abcdef" * 4


def containers(rendered):
    return [container for daemon_set in rendered.both for container in daemon_set.containers]


def test_default():
    assert {container["image"] for container in containers(defaults())} == {"sluice:0.1.0"}


@table("image",
       ("global.imageRegistry", "registry.example.com", "registry.example.com/sluice:0.1.0"),
       ("image.registry", "registry.example.com/team", "registry.example.com/team/sluice:0.1.0"),
       ("image.repository", "gpu/sluice", "gpu/sluice:0.1.0"),
       ("image.tag", "0.1.0-debian", "sluice:0.1.0-debian"),
       ("image.digest", DIGEST, f"sluice@{DIGEST}"))
def test_name(rendered, image):
    assert {container["image"] for container in containers(rendered)} == {image}


@value("global.imageRegistry", "a.example.com", beside={"image.registry": "b.example.com"})
def test_the_global_registry_goes_before(rendered):
    assert rendered.node.container["image"] == "a.example.com/sluice:0.1.0"


@value("image.pullPolicy", "Never")
def test_pull_policy(rendered):
    assert {container["imagePullPolicy"] for container in containers(rendered)} == {"Never"}


@value("image.version", "0.2.0")
def test_the_library_is_that_of_the_image(rendered):
    assert "--library=/var/lib/sluice/library/0.1.0" in defaults().plugin.args
    assert "--library=/var/lib/sluice/library/0.2.0" in rendered.plugin.args


@table("secrets",
       ("global.imagePullSecrets", [{"name": "all"}], [{"name": "all"}]),
       ("imagePullSecrets", [{"name": "own"}], [{"name": "own"}]))
def test_pull_secrets(rendered, secrets):
    assert [each.pod["imagePullSecrets"] for each in rendered.both] == [secrets, secrets]


@value("imagePullSecrets", [{"name": "own"}, {"name": "all"}], beside={"global.imagePullSecrets": [{"name": "all"}]})
def test_pull_secrets_are_added_up(rendered):
    assert rendered.node.pod["imagePullSecrets"] == [{"name": "all"}, {"name": "own"}]
