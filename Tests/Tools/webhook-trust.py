#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes an authority and certificates of it, for the receiver of a webhook. Nothing but Python and openssl is needed.

    webhook-trust.py FOLDER

Writes ca.pem, crl.pem (its revocation list), good.pem and good.key, revoked.pem and revoked.key (for 127.0.0.1; the list names the second), other.pem and other.key (for another
name), and stranger.pem (another authority).
"""
import pathlib
import subprocess
import sys

folder = pathlib.Path(sys.argv[1]).resolve()
KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, check=True)


(folder / "index").write_text("")
(folder / "index.attr").write_text("unique_subject = no\n")
(folder / "crlnumber").write_text("01\n")
(folder / "ca.conf").write_text(
    "[ca]\ndefault_ca = own\n[own]\ndatabase = index\nnew_certs_dir = .\ncertificate = ca.pem\nprivate_key = ca.key\nrand_serial = yes\ncrlnumber = crlnumber\n"
    "default_md = sha256\ndefault_days = 2\ndefault_crl_days = 2\npolicy = any\ncopy_extensions = copy\n[any]\ncommonName = supplied\n")
for name in ("ca", "stranger"):
    openssl("req", "-x509", *KEY, "-days", "2", "-subj", f"/CN=framehost-{name}", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
            "-keyout", f"{name}.key", "-out", f"{name}.pem")
for name, subject in (("good", "IP:127.0.0.1"), ("revoked", "IP:127.0.0.1"), ("other", "DNS:elsewhere.example")):
    openssl("req", "-new", *KEY, "-subj", f"/CN={name}", "-addext", f"subjectAltName={subject}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
    openssl("ca", "-batch", "-config", "ca.conf", "-notext", "-in", f"{name}.csr", "-out", f"{name}.pem")
openssl("ca", "-config", "ca.conf", "-revoke", "revoked.pem")
openssl("ca", "-config", "ca.conf", "-gencrl", "-out", "crl.pem")
