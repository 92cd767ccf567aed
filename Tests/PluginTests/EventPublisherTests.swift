// SPDX-License-Identifier: Apache-2.0

@testable import FrameCore
@testable import MQTTEvents
@testable import NATSEvents
import Publishing
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
            "servers: 'servers' must start with nats:// or tls://. Write it like \"nats://192.168.1.7:4222\"."
        ),
        (
            #"{"servers":["nats://me:secret@a"]}"#,
            "servers: 'servers' contains a login, which everyone who can read the chain file would see. Leave it out, and set 'login' to a file with a line name:password, or to env:NAME."
        ),
        (
            #"{"servers":["nats://a:70000"]}"#,
            "servers: 'servers' must have a port from 1 to 65535. Correct it, or leave it out for 4222."
        ),
        (
            #"{"servers":["nats://a","tls://b"]}"#,
            "servers: 'servers' has both nats:// and tls://, but one connection goes to all of them. Use tls:// for all."
        ),
        (#"{"servers":[]}"#, "servers: 'servers' must name 1 to 32 servers. Write [\"nats://127.0.0.1:4222\"]."),
        (
            #"{"caFile":"ca.pem"}"#,
            "caFile: 'caFile' is set, but nats:// has no certificates. Use tls://, or leave it out."
        ),
        (
            #"{"subject":"a.>"}"#,
            "subject: 'subject' \"a.>\" must be words of letters, digits, - and _ with dots between them. Write it like \"framehost\" or \"site.framehost\"."
        ),
        (
            #"{"events":["Motion *"]}"#,
            "events: 'events' has \"Motion *\", which must be the name of an event. Write \"recording-did-stop\", or \"recording-*\" for all names that begin with recording-; `framehost describe STAGE` lists the events."
        ),
        (
            #"{"spoolMegabytes":0}"#,
            "spoolMegabytes: 0 must be from 1 to 65536. Correct it, or leave the key out for 64."
        ),
    ]) func saysWhatIsWrongWithOptionsOfNATS(text: String, fault: String) throws {
        #expect(try Self.fault(NATSEventsOptions.self, text) == fault)
    }

    @Test(arguments: [
        ("{}", ""), (#"{"broker":"MQTTS://broker.example"}"#, ""),
        (
            #"{"broker":"10.0.0.1"}"#,
            "broker: 'broker' must start with mqtt:// or mqtts://. Write it like \"mqtt://192.168.1.7:1883\"."
        ),
        (
            #"{"broker":"mqtt://a b"}"#,
            "broker: 'broker' must have only a host and a port after ://. Write it like \"mqtt://192.168.1.7:1883\"."
        ),
        (
            #"{"topic":"a/#"}"#,
            "topic: 'topic' \"a/#\" must be words of letters, digits, - and _ with / between them. Write it like \"framehost\" or \"site/framehost\"."
        ),
        (
            #"{"broker":"mqtts://a","caFile":"a.pem","verify":false}"#,
            "caFile: 'caFile' names trusted certificates, but \"verify\": false trusts all. Leave one of the two out."
        ),
    ]) func saysWhatIsWrongWithOptionsOfMQTT(text: String, fault: String) throws {
        #expect(try Self.fault(MQTTEventsOptions.self, text) == fault)
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
        var news = OutwardNews(kind: "NATS", server: "nats://a:4222")
        #expect(
            news.disconnected("No server", waiting: 3, now: 0)?.text
                == "The NATS server nats://a:4222 takes no events: No server. They wait in the spool (3 now) and are sent when it is back."
        )
        #expect(news.disconnected("No server", waiting: 3, now: 599_999_999_999) == nil)
        #expect(news.disconnected("No server", waiting: 3, now: 600_000_000_000) != nil)
        #expect(
            news.connected(to: "nats://a:4222", waiting: 1)?.text
                == "Events go to the NATS server nats://a:4222 again. 1 event waits.")
        #expect(news.connected(to: "nats://a:4222", waiting: 0) == nil)
    }

    @Test func addsUpLossesForAMinute() {
        var news = OutwardNews(kind: "MQTT", server: "mqtt://a:1883")
        let first = news.ofSpool(losses: [.spoolFull: 2, .tooFast: 1], fault: nil, now: 0)
        #expect(
            first.map(\.text) == ["3 events were lost before the MQTT server: 2 spool-full, 1 too-fast; 3 in all."])
        #expect(news.ofSpool(losses: [.refused: 1], fault: nil, now: 59_000_000_000) == [])
        #expect(
            news.ofSpool(losses: [:], fault: nil, now: 60_000_000_000).map(\.text)
                == ["1 event was lost before the MQTT server: 1 refused; 4 in all."])
        #expect(
            news.ofSpool(losses: [:], fault: "No space left on device", now: 61_000_000_000).map(\.event)
                == ["spool-failed"])
        #expect(news.ofSpool(losses: [:], fault: nil, now: 62_000_000_000).map(\.event) == ["spool-recovered"])
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
