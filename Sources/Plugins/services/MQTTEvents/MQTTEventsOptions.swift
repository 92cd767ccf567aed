// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Publishing

/// Options of ``MQTTEvents``.
struct MQTTEventsOptions: StageOptions {
    @Option(help: "Address of the broker: mqtt://HOST:PORT, or mqtts://HOST:PORT, without a login.")
    var broker = "mqtt://127.0.0.1:1883"
    @Option(help: "Login: a file with a line name:password, or env:NAME for an environment variable with such a line.")
    var login: String? = nil
    @Option(help: "Verifies the certificate of an mqtts broker. false accepts any certificate.") var verify = true
    @Option(help: "A PEM file with the trusted certificates, in place of the system's.") var caFile: String? = nil
    @Option(help: "Beginning of the topics: TOPIC/HOST/CHAIN/….") var topic = "framehost"
    @Option(help: "Name of this machine in topics and ids. Default: its host name.") var host: String? = nil
    @Option(
        help:
            "Keep-alive time. If this client is silent for one and a half times this long, the broker publishes the last will of this client.",
        range: 5...3600, unit: "s")
    var keepAliveSeconds = 15
    @Option(help: "Publishes what Home Assistant needs to find the chain by itself.") var homeAssistant = true
    @Option(help: "Beginning of the topics that Home Assistant reads: its discovery prefix.")
    var discoveryTopic = "homeassistant"
    @Option(help: "The least important events that are sent.") var level = PublishedLevel.info
    @Option(
        help:
            "Names of the events that are sent, if their level is at least 'level'; \"recording-*\" stands for all names that begin with recording-. Default: all names."
    )
    var events: [String] = []
    @Option(
        help:
            "Folder where events wait for the broker. Default: events/CHAIN.mqtt in $STATE_DIRECTORY, $XDG_STATE_HOME/framehost or ~/.local/state/framehost."
    )
    var spool: String? = nil
    @Option(
        help: "Maximum disk space for the spool. When it is full, the oldest events are deleted.",
        range: 1...65_536, unit: "MiB")
    var spoolMegabytes = 64

    var address: ServerAddress {
        get throws(OptionFault) {
            try ServerAddress(broker, option: "broker", schemes: [("mqtt", 1883), ("mqtts", 8883)])
        }
    }

    func validate() throws {
        let address = try address
        for (name, value, kind) in [
            ("login", login, "a file or env:NAME"), ("caFile", caFile, "a file"), ("spool", spool, "a folder"),
        ] {
            if let value, value.isEmpty || value.utf8.contains(0) {
                throw OptionFault(
                    "'\(name)' must name \(kind), but \(value.isEmpty ? "is empty" : "contains U+0000")",
                    remedy: "Name \(kind), or leave '\(name)' out.", options: [name])
            }
        }
        if caFile != nil, address.scheme != "mqtts" {
            throw OptionFault(
                "'caFile' is set, but mqtt:// has no certificates",
                remedy: "Use mqtts:// in 'broker', or leave 'caFile' out.", options: ["caFile"])
        }
        if caFile != nil, !verify {
            throw OptionFault(
                "'caFile' names trusted certificates, but \"verify\": false trusts all",
                remedy: "Leave one of the two out.", options: ["caFile"])
        }
        for (name, value, usual) in [
            ("topic", topic, "framehost"), ("discoveryTopic", discoveryTopic, "homeassistant"),
        ] {
            let words = value.split(separator: "/", omittingEmptySubsequences: false)
            if words.contains(where: { $0.isEmpty || String($0) != EventName.word(String($0)) }) || words.count > 8 {
                throw OptionFault(
                    "'\(name)' \(JSONNode(.string(value)).text()) must be 1 to 8 words of 1 to 64 ASCII letters, digits, - and _, with / between them",
                    remedy: "Write it like \"\(usual)\" or \"site/\(usual)\".", options: [name])
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
