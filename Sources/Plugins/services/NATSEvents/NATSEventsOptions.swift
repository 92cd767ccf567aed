// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Publishing

/// Options of ``NATSEvents``.
struct NATSEventsOptions: StageOptions {
    @Option(
        help:
            "Addresses of the servers: nats://HOST:PORT, or tls://HOST:PORT, without a login. For a cluster, name all or some of its servers."
    )
    var servers = ["nats://127.0.0.1:4222"]
    @Option(help: "Login: a file with a line name:password, or env:NAME for an environment variable with such a line.")
    var login: String? = nil
    @Option(help: "A credentials file (.creds, JWT and seed), in place of login.")
    var credentials: String? = nil
    @Option(help: "Verifies the certificates of tls servers. false accepts any certificate.") var verify = true
    @Option(help: "A PEM file with the trusted certificates, in place of the system's.") var caFile: String? = nil
    @Option(help: "Name of the JetStream stream that takes the events.") var stream = "FRAMEHOST"
    @Option(help: "Creates the stream if it does not exist, for all subjects that begin with the value of 'subject'.")
    var createStream = true
    @Option(help: "Number of replicas of a stream that is created: 3 or 5 in a cluster.", range: 1...5)
    var replicas = 1
    @Option(help: "Beginning of the subjects: SUBJECT.HOST.CHAIN.EVENT.") var subject = "framehost"
    @Option(help: "Name of this machine in subjects and ids. Default: its host name.") var host: String? = nil
    @Option(help: "The least important events that are sent.") var level = PublishedLevel.info
    @Option(
        help:
            "Names of the events that are sent, if their level is at least 'level'; \"recording-*\" stands for all names that begin with recording-. Default: all names."
    )
    var events: [String] = []
    @Option(
        help:
            "Folder where events wait for the server. Default: events/CHAIN.nats in $STATE_DIRECTORY, $XDG_STATE_HOME/framehost or ~/.local/state/framehost."
    )
    var spool: String? = nil
    @Option(
        help: "Maximum disk space for the spool. When it is full, the oldest events are deleted.",
        range: 1...65_536, unit: "MiB")
    var spoolMegabytes = 64

    var addresses: [ServerAddress] {
        get throws(OptionFault) {
            var result: [ServerAddress] = []
            for server in servers {
                result.append(
                    try ServerAddress(
                        server, option: "servers", isInList: true, schemes: [("nats", 4222), ("tls", 4222)]))
            }
            return result
        }
    }

    func validate() throws {
        let addresses = try addresses
        guard !addresses.isEmpty, addresses.count <= 32 else {
            throw OptionFault(
                "'servers' must name 1 to 32 servers, but names \(addresses.count)",
                remedy: "Write it like [\"nats://127.0.0.1:4222\"]; of a large cluster, name some servers.",
                options: ["servers"])
        }
        let isSecured = addresses.contains { $0.scheme == "tls" }
        if isSecured, addresses.contains(where: { $0.scheme == "nats" }) {
            throw OptionFault(
                "'servers' has both nats:// and tls://, but all servers must use the same scheme",
                remedy: "Use tls:// for all of them, or nats:// for all of them.", options: ["servers"])
        }
        if login != nil, credentials != nil {
            throw OptionFault(
                "'login' and 'credentials' cannot be used together", remedy: "Leave one of them out.",
                options: ["login", "credentials"])
        }
        let (file, folder) = ("a file", "a folder")
        for (name, value, kind) in [
            ("login", login, "a file or env:NAME"), ("credentials", credentials, file), ("caFile", caFile, file),
            ("spool", spool, folder),
        ] {
            if let value, value.isEmpty || value.utf8.contains(0) {
                throw OptionFault(
                    "'\(name)' must name \(kind), but \(value.isEmpty ? "is empty" : "contains U+0000")",
                    remedy: "Name \(kind), or leave '\(name)' out.", options: [name])
            }
        }
        if caFile != nil, !isSecured {
            throw OptionFault(
                "'caFile' is set, but nats:// has no certificates",
                remedy: "Use tls:// for all of 'servers', or leave 'caFile' out.", options: ["caFile"])
        }
        if caFile != nil, !verify {
            throw OptionFault(
                "'caFile' names trusted certificates, but \"verify\": false trusts all",
                remedy: "Leave one of the two out.", options: ["caFile"])
        }
        if stream.isEmpty || stream != EventName.word(stream) {
            throw OptionFault(
                "'stream' \(JSONNode(.string(stream)).text()) must be 1 to 64 ASCII letters, digits, - and _",
                remedy: "Write it like \"FRAMEHOST\".", options: ["stream"])
        }
        let tokens = subject.split(separator: ".", omittingEmptySubsequences: false)
        if tokens.contains(where: { $0.isEmpty || String($0) != EventName.word(String($0)) }) || tokens.count > 8 {
            throw OptionFault(
                "'subject' \(JSONNode(.string(subject)).text()) must be 1 to 8 words of 1 to 64 ASCII letters, digits, - and _, with dots between them",
                remedy: "Write it like \"framehost\" or \"site.framehost\".", options: ["subject"])
        }
        if host == "" {
            throw OptionFault(
                "'host' is empty", remedy: "Write a name, or leave 'host' out for the machine's own name.",
                options: ["host"])
        }
        if let fault = EventFilter.fault(of: events) { throw fault }
    }
}
