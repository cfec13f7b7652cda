"""The places of a host that matter to a sandbox: what is secret, and where toolchains live."""

from typing import Final

SECRET: Final = (
    "/home", "/root", "/run", "/tmp", "/var/tmp", "/dev/shm", "/mnt", "/media", "/srv",  # noqa: S108
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers",
    "/etc/sudoers.d", "/etc/ssh", "/etc/ssl/private", "/etc/krb5.keytab", "/var/backups",
    "/var/mail", "/var/spool", "/var/log",
)  # fmt: skip
"""Hidden from every command."""

TEMPORARY: Final = ("/tmp", "/var/tmp")  # noqa: S108
"""Of these, what every command has for itself, empty and writable."""

CREDENTIALS: Final = (
    ".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".config", ".netrc", ".pypirc",
    ".npmrc", ".yarnrc", ".yarnrc.yml", ".git-credentials", ".gitconfig", ".pgpass", ".my.cnf",
    ".password-store", ".vault-token", ".terraform.d", ".terraformrc", ".boto", ".s3cfg",
    ".mozilla", ".thunderbird", ".claude", ".claude.json", ".codex", ".gemini",
    ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml",
    ".m2/settings-security.xml", ".gradle/gradle.properties", ".local/share/keyrings",
    ".cache/huggingface/token", ".bash_history", ".zsh_history", ".python_history",
    ".psql_history",
)  # fmt: skip
"""Beneath a home folder: hidden even where the folder around them can be seen."""

TOOLCHAINS: Final = (
    ".pyenv", ".nvm", ".volta", ".fnm", ".asdf", ".rbenv", ".sdkman", ".jenv", ".cargo",
    ".rustup", "go", ".bun", ".deno", ".dotnet", ".juliaup", ".ghcup", ".opam", ".elan", ".poetry",
    ".npm-global", "miniconda3", "anaconda3", "miniforge3", "mambaforge", ".local/bin",
    ".local/lib", ".local/pipx", ".local/share/uv", ".local/share/pipx", ".local/share/pnpm",
    ".local/share/mise", ".local/share/fnm", ".m2/repository",
)  # fmt: skip
"""Beneath a home folder: shown, to be read only."""

POINTERS: Final = (
    "VIRTUAL_ENV", "CONDA_PREFIX", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME", "NVM_DIR",
    "PYENV_ROOT", "JAVA_HOME",
)  # fmt: skip
"""Variables that name a toolchain's folder."""

SECRET_POINTERS: Final = (
    "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AZURE_CONFIG_DIR", "CLOUDSDK_CONFIG",
    "DOCKER_CONFIG", "GNUPGHOME", "GOOGLE_APPLICATION_CREDENTIALS", "KUBECONFIG", "NETRC",
    "NPM_CONFIG_USERCONFIG", "PGPASSFILE", "PIP_CONFIG_FILE", "SSH_AUTH_SOCK", "TMPDIR",
    "XAUTHORITY", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR",
)  # fmt: skip
"""Variables of Daruma's own environment that name secret places, wherever these are."""
