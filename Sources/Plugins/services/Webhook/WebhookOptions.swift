// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Publishing

/// Options of ``Webhook``.
struct WebhookOptions: StageOptions {
    @Option(help: "Address that each event is posted to: https://HOST/PATH, or http://HOST/PATH, without a login.")
    var url = ""
    @Option(
        help:
            "Secret that signs the events: a file with one line, or env:NAME for an environment variable. Default: no signature."
    )
    var secret: String? = nil
    @Option(help: "Login: a file with a line name:password, or env:NAME for an environment variable with such a line.")
    var login: String? = nil
    @Option(help: "Verifies the certificate of an https receiver. false accepts any certificate.") var verify = true
    @Option(help: "A PEM file with the trusted certificates, in place of the system's.") var caFile: String? = nil
    @Option(
        help:
            "A PEM file with the revocation lists of these authorities: a certificate that a list names is refused. It is read at each connection."
    )
    var crlFile: String? = nil
    @Option(
        help:
            "Time for a connection, and time without a byte of the receiver. A whole request may take twice as long.",
        range: 1...120, unit: "s")
    var timeoutSeconds = 10
    @Option(help: "Name of this machine in events and ids. Default: its host name.") var host: String? = nil
    @Option(help: "The least important events that are sent.") var level = PublishedLevel.info
    @Option(
        help:
            "Names of the events that are sent, if their level is at least 'level'; \"recording-*\" stands for all names that begin with recording-. Default: all names."
    )
    var events: [String] = []
    @Option(
        help:
            "Folder where events wait for the receiver. Default: events/CHAIN.webhook in $STATE_DIRECTORY, $XDG_STATE_HOME/framehost or ~/.local/state/framehost."
    )
    var spool: String? = nil
    @Option(
        help: "Maximum disk space for the spool. When it is full, the oldest events are deleted.",
        range: 1...65_536, unit: "MiB")
    var spoolMegabytes = 64

    var address: WebhookAddress { get throws(OptionFault) { try WebhookAddress(url) } }

    func validate() throws {
        let address = try address
        let (file, secret) = ("a file", "a file or env:NAME")
        for (name, value, kind) in [
            ("secret", self.secret, secret), ("login", login, secret), ("caFile", caFile, file),
            ("crlFile", crlFile, file), ("spool", spool, "a folder"),
        ] {
            if let value, value.isEmpty || value.utf8.contains(0) {
                throw OptionFault(
                    "'\(name)' must name \(kind), but \(value.isEmpty ? "is empty" : "contains U+0000")",
                    remedy: "Name \(kind), or leave '\(name)' out.", options: [name])
            }
        }
        for (name, value) in [("caFile", caFile), ("crlFile", crlFile)] where value != nil {
            if !address.isSecured {
                throw OptionFault(
                    "'\(name)' is set, but http:// has no certificates",
                    remedy: "Use https:// in 'url', or leave '\(name)' out.", options: [name])
            }
            if !verify {
                throw OptionFault(
                    "'\(name)' says which certificates are trusted, but \"verify\": false trusts all",
                    remedy: "Leave one of the two out.", options: [name])
            }
        }
        if host == "" {
            throw OptionFault(
                "'host' is empty", remedy: "Write a name, or leave 'host' out for the machine's own name.",
                options: ["host"])
        }
        if let fault = EventFilter.fault(of: events) { throw fault }
    }
}
