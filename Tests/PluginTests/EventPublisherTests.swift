// SPDX-License-Identifier: Apache-2.0

@testable import FrameCore
import Foundation
@testable import MQTTEvents
@testable import NATSEvents
import Publishing
import Shared
import Testing

@Suite struct EventPublisherTests {
    private static func node(_ text: String) throws -> JSONNode { try JSONReader.read(Array(text.utf8), file: "t") }

    private static func fault<O: StageOptions>(_ type: O.Type, _ text: String) throws -> String {
        let members = try node(text).asObject!
        do {
            _ = try OptionDecoder.decode(O.self, from: members) { key, _ in FaultPlace(key) }
            return ""
        } catch let faults as FrameHostErrors {
            return faults.errors.map(\.description).joined(separator: "\n")
        }
    }

    @Test(arguments: [
        ("{}", ""),
        (#"{"servers":["tls://a:4222","tls://[::1]"]}"#, ""),
        (
            #"{"servers":["http://a"]}"#,
            "servers: 'servers' has \"http://a\", which must start with nats:// or tls://. Write it like \"nats://192.168.1.7:4222\"."
        ),
        (
            #"{"servers":["nats://me:secret@a"]}"#,
            "servers: 'servers' contains a login, which everyone who can read the chain file would see. Leave it out, and set 'login' to a file with a line name:password, or to env:NAME."
        ),
        (
            #"{"servers":["nats://a:70000"]}"#,
            "servers: the port in each address of 'servers' must be from 1 to 65535. Correct the port, or leave it out for 4222."
        ),
        (
            #"{"servers":["nats://a","tls://b"]}"#,
            "servers: 'servers' has both nats:// and tls://, but all servers must use the same scheme. Use tls:// for all of them, or nats:// for all of them."
        ),
        (
            #"{"servers":[]}"#,
            "servers: 'servers' must name 1 to 32 servers, but names 0. Write it like [\"nats://127.0.0.1:4222\"]; of a large cluster, name some servers."
        ),
        (
            #"{"caFile":"ca.pem"}"#,
            "caFile: 'caFile' is set, but nats:// has no certificates. Use tls:// for all of 'servers', or leave 'caFile' out."
        ),
        (
            #"{"subject":"a.>"}"#,
            "subject: 'subject' \"a.>\" must be 1 to 8 words of 1 to 64 ASCII letters, digits, - and _, with dots between them. Write it like \"framehost\" or \"site.framehost\"."
        ),
        (
            #"{"events":["Motion *"]}"#,
            "events: 'events' has \"Motion *\", which must be the name of an event: 1 to 64 lower-case letters, digits and hyphens. Write \"recording-did-stop\", or \"recording-*\" for all names with this beginning. `framehost describe TYPE` lists the events of a stage type, `framehost describe chain` all others."
        ),
        (
            #"{"spoolMegabytes":0}"#,
            "spoolMegabytes: 0 must be from 1 to 65536. Use 1 or more, or leave the key out for 64."
        ),
    ]) func saysWhatIsWrongWithOptionsOfNATS(text: String, fault: String) throws {
        #expect(try Self.fault(NATSEventsOptions.self, text) == fault)
    }

    @Test(arguments: [
        ("{}", ""), (#"{"broker":"MQTTS://broker.example"}"#, ""),
        (
            #"{"broker":"10.0.0.1"}"#,
            "broker: 'broker' \"10.0.0.1\" must start with mqtt:// or mqtts://. Write it like \"mqtt://192.168.1.7:1883\"."
        ),
        (
            #"{"broker":"mqtt://a b"}"#,
            "broker: 'broker' must have only HOST or HOST:PORT after ://. Write it like \"mqtt://192.168.1.7:1883\", and an IPv6 address in brackets: \"mqtt://[fd00::7]:1883\"."
        ),
        (
            #"{"topic":"a/#"}"#,
            "topic: 'topic' \"a/#\" must be 1 to 8 words of 1 to 64 ASCII letters, digits, - and _, with / between them. Write it like \"framehost\" or \"site/framehost\"."
        ),
        (
            #"{"broker":"mqtts://a","caFile":"a.pem","verify":false}"#,
            "caFile: 'caFile' names trusted certificates, but \"verify\": false trusts all. Leave one of the two out."
        ),
    ]) func saysWhatIsWrongWithOptionsOfMQTT(text: String, fault: String) throws {
        #expect(try Self.fault(MQTTEventsOptions.self, text) == fault)
    }

    @Test func saysWhichFileOfAServerCannotBeRead() throws {
        let folder = try ScratchFolder()
        func fault(_ name: String) -> String {
            do {
                return try ServerPath.readable(name, option: "credentials", folder: folder.path)
            } catch { return "\(error)" }
        }
        try "anything".write(toFile: folder.file("good"), atomically: false, encoding: .utf8)
        #expect(fault("good") == folder.file("good"))
        #expect(
            fault("none")
                == "credentials: the file '\(folder.file("none"))' does not exist. Create it, or correct 'credentials'."
        )
        #expect(fault("\(folder.path)/") == "credentials: '\(folder.path)/' is a folder. Name a file in it.")
    }

    @Test func readsALoginAndNeverShowsIt() throws {
        let folder = try ScratchFolder()
        func fault(_ name: String) -> String {
            do {
                return "\(try ServerLogin.read(name) { folder.file($0) })"
            } catch { return "\(error)" }
        }
        for (name, text) in [
            ("good", "\nbob:p:w \n"), ("two", "bob:secret\neve:secret\n"), ("empty", ""),
            ("large", "bob:" + String(repeating: "s", count: 4096)),
            ("mark", "\u{FEFF}bob:p"), ("without", "admin:\n"), ("colon", ":"),
        ] { try text.write(toFile: folder.file(name), atomically: false, encoding: .utf8) }
        #expect(try ServerLogin.read("mark") { folder.file($0) }.name == "bob")
        let without = try ServerLogin.read("without") { folder.file($0) }
        #expect(without.name == "admin" && without.password.isEmpty)
        let login = try ServerLogin.read("good") { folder.file($0) }
        #expect(login.name == "bob" && login.password == "p:w " && "\(login)" == "a login")
        for name in ["two", "empty", "colon"] {
            #expect(
                fault(name)
                    == "login: the file '\(folder.file(name))' must contain exactly one line, of the form name:password. Write only the name, a colon and the password, which may be empty."
            )
        }
        #expect(
            fault("large")
                == "login: the file '\(folder.file("large"))' must have at most 4096 bytes, but has 4100. Check that 'login' names the right file."
        )
        #expect(
            fault("none")
                == "login: 'login' must name a file or an environment variable, and there is no such file. Write name:password into a file and name that file (a relative path starts at the chain file's folder), or set a variable and write env:NAME."
        )
        #expect(
            fault("env:FRAMEHOST_NO_SUCH_VARIABLE")
                == "login: the environment variable 'FRAMEHOST_NO_SUCH_VARIABLE' is not set. Set it to name:password, or name a file."
        )
    }

    @Test func boundsWhatNothingAskedFor() throws {
        func taken(_ times: [Int64]) -> Int {
            var (bound, count) = (UnaskedBound(), 0)
            do throws(ServerFault) {
                for time in times {
                    try bound.count(now: time)
                    count += 1
                }
            } catch { #expect(error.isFlood && error.reason.contains("more than 200 messages within 10 s")) }
            return count
        }
        // At once, and for an hour as often as is too much or is not.
        #expect(taken([Int64](repeating: 5_000_000, count: 10_000)) == UnaskedBound.mostMessages)
        #expect(taken((0..<72_000).map { 5_000_000 + $0 * 49 }) == UnaskedBound.mostMessages)
        #expect(taken((0..<72_000).map { 5_000_000 + $0 * 51 }) == 72_000)
    }

    @Test func readsAddresses() throws {
        let schemes = [(name: "mqtt", port: 1883)]
        #expect("\(try ServerAddress("mqtt://a", option: "o", schemes: schemes))" == "mqtt://a:1883")
        #expect(
            "\(try ServerAddress("mqtt://[fe80::1%eth0]:99/", option: "o", schemes: schemes))"
                == "mqtt://[fe80::1%eth0]:99")
        for wrong in ["mqtt://", "mqtt://:1", "mqtt://[::1", "mqtt://a:0", "mqtt://a/b", "mqtt://a:1:2"] {
            #expect(throws: OptionFault.self) { try ServerAddress(wrong, option: "o", schemes: schemes) }
        }
    }

    @Test(arguments: [
        "mqtt://me:secret", "mqtt://me:secret/", "mqtt://me:secret/host", "mqtt://me:1883:secret",
        "mqtt://[::1]me:secret", "mqtt://[me:secret", "me:secret", "http://me:secret", "me:secret://host",
        "me:secret@host", "mqtt://[::1]secret", "mqtt://a/secret", "mqtt://a secret",
    ]) func quotesNoPasswordWhateverIsForgotten(address: String) throws {
        let one = try Self.fault(MQTTEventsOptions.self, #"{"broker":"\#(address)"}"#)
        let starts = ["broker: 'broker' must ", "broker: the port in 'broker' must "]
        #expect(starts.contains(where: one.hasPrefix) && !one.contains("secret"), "\(one)")
        let nats = address.hasPrefix("mqtt") ? "nats\(address.dropFirst(4))" : address
        let several = try Self.fault(NATSEventsOptions.self, #"{"servers":["\#(nats)"]}"#)
        let severalStarts = [
            "servers: each address in 'servers' must ", "servers: the port in each address of 'servers' must ",
        ]
        #expect(severalStarts.contains(where: several.hasPrefix) && !several.contains("secret"), "\(several)")
    }

    @Test(arguments: ["mqtt://:1", "http://[::1]:80", "http://a", "a"])
    func quotesAnAddressThatHasNoPassword(address: String) throws {
        let fault = try Self.fault(MQTTEventsOptions.self, #"{"broker":"\#(address)"}"#)
        #expect(fault.contains("'broker' \"\(address)\" must "), "\(fault)")
    }

    @Test func choosesEventsByLevelAndName() {
        func event(_ name: String, _ level: Event.Level) -> Event { Event(name: name, level: level, text: "", time: 0) }
        let all = EventFilter(level: .info, events: [])
        #expect(all.takes(event("fps", .info)))
        #expect(!all.takes(event("fps", .debug)))
        let some = EventFilter(level: .debug, events: ["recording-*", "state"])
        #expect(some.takes(event("recording-did-stop", .debug)))
        #expect(some.takes(event("state", .info)))
        #expect(!some.takes(event("states", .error)))
    }

    @Test func putsIdAndPlaceBeforeTheEvent() throws {
        let event = try Self.node(#"{"time":1,"event":"x","stage":"cam","level":"info","text":"y","host":"theirs"}"#)
        #expect(
            EventText.make(event, id: "h.b.r.7", number: 7, host: "h", chain: "door")
                == #"{"id":"h.b.r.7","number":7,"host":"h","chain":"door","time":1,"event":"x","stage":"cam","level":"info","text":"y","details":{"host":"theirs"}}"#
        )
        let both = try Self.node(#"{"time":1,"id":"own","host":"theirs","details":{"host":"inner","a":1}}"#)
        #expect(
            EventText.make(both, id: "h.b.r.8", number: 8, host: "h", chain: "door")
                == #"{"id":"h.b.r.8","number":8,"host":"h","chain":"door","time":1,"details":{"host":"inner","a":1,"id":"own"}}"#
        )
    }

    @Test func makesNoIdTwice() {
        let (a, b) = (EventIdentity(host: "cam.1/é"), EventIdentity(host: "cam.1/é"))
        #expect(a.id(5) != b.id(5))
        #expect(a.id(5).hasPrefix("cam_1___."))
        #expect(a.id(5).split(separator: ".").count == 4)
        #expect(EventName.word("") == "_")
        #expect(EventName.word(String(repeating: "x", count: 100)).count == 64)
    }

    @Test func saysOnceThatAServerIsAwayAndThatItIsBack() {
        var news = OutwardNews(kind: "NATS", servers: ["nats://a:4222"], spool: "/s")
        #expect(
            news.disconnected("No server", waiting: 3, now: 0)?.text
                == "The NATS server nats://a:4222 takes no events: No server. The events wait in the spool (3 now) until they can be sent. If this lasts, check the server and the options of 'nats'."
        )
        #expect(news.disconnected("No server", waiting: 3, now: 599_999_999_999) == nil)
        #expect(news.disconnected("No server", waiting: 3, now: 600_000_000_000) != nil)
        #expect(
            news.connected(to: "nats://a:4222", waiting: 1)?.text
                == "Events go to the NATS server nats://a:4222 again. 1 event waits.")
        #expect(news.connected(to: "nats://a:4222", waiting: 0) == nil)
    }

    @Test func addsUpLossesForAMinute() {
        var news = OutwardNews(kind: "MQTT", servers: ["mqtt://a:1883"], spool: "/s")
        let first = news.ofSpool(losses: [.spoolFull: 2, .tooFast: 1], fault: nil, now: 0)
        #expect(
            first.map(\.text) == [
                "3 events for the MQTT server were lost: 2 (spool full), 1 (too many at once). To keep more events, raise 'mqtt.spoolMegabytes' and start the chain again."
            ])
        #expect(news.ofSpool(losses: [.refused: 1], fault: nil, now: 59_000_000_000) == [])
        #expect(
            news.ofSpool(losses: [:], fault: nil, now: 60_000_000_000).map(\.text)
                == ["1 event for the MQTT server was lost: refused by the server. Since the start, 4 were lost."])
        news.refused("larger than the stream's maximum message size")
        #expect(
            news.ofSpool(losses: [.refused: 1], fault: nil, now: 120_000_000_000).map(\.text)
                == [
                    "1 event for the MQTT server was lost: refused by the server: larger than the stream's maximum message size. Since the start, 5 were lost."
                ])
        // Nothing comes after the last report.
        #expect(news.ofSpool(losses: [.notWritten: 2], fault: nil, now: 120_000_000_001) == [])
        #expect(
            news.ofSpool(losses: [:], fault: nil, now: 120_000_000_002, isLast: true).map(\.text)
                == [
                    "2 events for the MQTT server were lost: spool not writable at the end of the run. Since the start, 7 were lost."
                ])
        #expect(news.ofSpool(losses: [:], fault: nil, now: 120_000_000_003, isLast: true) == [])
        let failed = news.ofSpool(losses: [:], fault: "No space left on device", now: 121_000_000_000)
        #expect(failed.map(\.event) == ["spool-failed"])
        #expect(
            failed.map(\.text) == [
                "The MQTT spool '/s' cannot be written: No space left on device. Free space on its disk, or make it writable for this user. Until then, only the last 1024 events are kept, in memory."
            ])
        #expect(news.ofSpool(losses: [:], fault: nil, now: 122_000_000_000).map(\.event) == ["spool-recovered"])
    }

    @Test func namesTopicsByHostChainAndStage() {
        let topics = MQTTTopics(topic: "framehost", host: "cam 1", chain: "front.door")
        let status = ChainStatus(
            state: .recovering, stages: [ChainStatus.Stage(id: "cam", state: .recovering, reason: "unplugged")],
            problems: ["cam is away"])
        let retained = topics.retained(status)
        #expect(retained["framehost/cam_1/front_door/state"] == "recovering")
        #expect(retained["framehost/cam_1/front_door/problem"] == "ON")
        #expect(retained["framehost/cam_1/front_door/stage/cam/state"] == "recovering")
        #expect(retained["framehost/cam_1/front_door/details"]?.contains("unplugged") == true)
        #expect(retained.count == 4)
    }

    @Test func namesStagesThatShareATopic() {
        let topics = MQTTTopics(topic: "framehost", host: "h", chain: "door")
        #expect(topics.shared(by: ["clip", "clip.audio", "cam"]).isEmpty)
        let shared = topics.shared(by: ["clip.audio", "cam", "clip_audio"])
        #expect(shared.map { $0.topic } == ["framehost/h/door/stage/clip_audio/state"])
        #expect(shared.map { $0.stages } == [["clip.audio", "clip_audio"]])
    }

    @Test func tellsOfEachSharedTopicOnce() {
        let topics = MQTTTopics(topic: "framehost", host: "h", chain: "door")
        var told = SharedTopics()
        func take(_ stages: String...) -> [[String]] { told.take(topics.shared(by: stages)).map { $0.stages } }
        #expect(take("a.b", "a_b") == [["a.b", "a_b"]])
        #expect(take("a.b", "a_b", "cam").isEmpty)
        #expect(take("a.b", "cam").isEmpty)
        #expect(take("a.b", "a_b", "c.d", "c_d") == [["c.d", "c_d"]])
        #expect(take("a.b", "a-b", "a_b").isEmpty)
        let long = String(repeating: "x", count: 64)
        #expect(take(long, "\(long).audio") == [[long, "\(long).audio"]])
    }

    @Test func saysWhatATLSConnectionNeeds() {
        #expect(
            TLSTrust.fault(host: "a", verify: true, reason: "certificate has expired")
                == "the TLS connection failed (certificate has expired). The port must be one for TLS, and the certificate must name 'a' and be trusted ('caFile', or the system's certificates)"
        )
        #expect(
            TLSTrust.fault(host: "a", verify: false)
                == "the TLS connection failed. The port must be one for TLS")
    }

    /// The members that Home Assistant's documentation asks for: device, origin, components; of each its platform and
    /// `unique_id`; ids of letters, digits, `_` and `-`.
    @Test func describesADeviceAsHomeAssistantAsksForIt() throws {
        let topics = MQTTTopics(topic: "framehost", host: "h", chain: "door")
        let home = HomeAssistant(prefix: "homeassistant", host: "h", chain: "door", topics: topics)
        #expect(home.topic == "homeassistant/device/framehost_h_door/config")
        let node = home.configuration(stages: ["cam", "rec"], removed: ["old", "cam"])
        #expect(node["origin"]?["name"]?.asString == "framehost")
        #expect(node["device"]?["identifiers"]?.asArray?.first?.asString == "framehost_h_door")
        #expect(node["availability_topic"]?.asString == "framehost/h/door/status")
        let parts = try #require(node["components"]?.asObject)
        #expect(parts.map(\.key) == ["state", "problem", "stage_cam", "stage_rec", "stage_old"])
        for part in parts {
            #expect(part.value["platform"]?.asString != nil)
            guard part.key != "stage_old" else { continue }
            let id = try #require(part.value["unique_id"]?.asString)
            #expect(id.utf8.allSatisfy { EventName.word(String(UnicodeScalar($0))) == String(UnicodeScalar($0)) })
            #expect(part.value["state_topic"]?.asString?.hasPrefix("framehost/h/door/") == true)
        }
        #expect(parts.last?.value.asObject?.count == 1)
    }
}
