// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// `mqtt-events` with mosquitto.
@Suite(.serialized, .needs(MQTTBroker.mosquitto), .needs(MQTTBroker.subscriber)) struct MQTTEventsTests {
    private let workspace: Workspace
    private let broker: MQTTBroker
    private let base = "framehost/porch/door"

    init() throws {
        workspace = try Workspace()
        broker = try MQTTBroker(workspace)
    }

    private func writeChain(_ more: String = "") throws {
        try workspace.write(
            "door.json",
            """
            {
              "mqtt": {
                "broker": "\(broker.address)", "host": "porch", "level": "debug",
                "events": ["option-changed"], "keepAliveSeconds": 5\(more)
              },
              "stages": [
                { "id": "cam", "use": "test-source", "size": "160x120", "rate": 10, "live": true },
                { "id": "text", "use": "text", "text": "0", "link": { "queue": 64 } },
                { "id": "sink", "use": "null-sink" }
              ]
            }
            """)
    }

    private func startHost() throws -> RunningProgram {
        try Program.framehost.start(
            ["door.json", "--commands"],
            environment: ["XDG_STATE_HOME": workspace.path("state"), "STATE_DIRECTORY": ""],
            folder: workspace.folder.path)
    }

    private func endCleanly(_ host: RunningProgram) throws {
        kill(host.pid, SIGINT)
        let outcome = try host.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.status): \(outcome.error)")
    }

    private func post(_ numbers: ClosedRange<Int>, _ host: RunningProgram) throws {
        for number in numbers {
            try host.write(#"{"stage":"text","set":{"text":"\#(number)"},"tag":"n\#(number)"}"# + "\n")
            // No more than the mailbox of a stage takes, on a busy machine too.
            if number % 20 == 0 { try host.waitForOutput(#""tag":"n\#(number)""#) }
        }
        try host.waitForOutput(#""tag":"n\#(numbers.upperBound)""#)
    }

    /// Ids and numbers of the events that a subscriber has seen.
    private func seen(_ text: String) throws -> [(id: String, number: Int)] {
        try text.split(separator: "\n").compactMap { line in
            guard let brace = line.firstIndex(of: "{") else { return nil }
            let event = try JSON(parsing: String(line[brace...]))
            guard let id = event["id"].string, let number = event["options"]["text"].string.flatMap({ Int($0) })
            else { return nil }
            return (id, number)
        }
    }

    @Test(.timeLimit(.minutes(60))) func retainsStateAndMendsItAfterEitherSidesRestart() throws {
        try broker.start()
        try writeChain()
        let host = try startHost()
        try broker.wait(for: "online", at: "\(base)/status")
        try broker.wait(for: "streaming", at: "\(base)/state")
        try broker.wait(for: "streaming", at: "\(base)/stage/cam/state")
        try broker.wait(for: "OFF", at: "\(base)/problem")
        // A chain that got no processor for seconds says that it is not healthy, and then that it is.
        _ = try broker.waitForRetained("\(base)/details") { try JSON(parsing: $0)["healthy"].bool == true }
        #expect(try host.sendPatiently(#"{"stage":"cam","command":"pause"}"#)["ok"].bool == true)
        try broker.wait(for: "paused", at: "\(base)/stage/cam/state")

        // The broker forgets everything.
        try broker.end()
        #expect(try host.sendPatiently(#"{"stage":"cam","command":"resume"}"#)["ok"].bool == true)
        try FileManager.default.removeItem(atPath: workspace.path("mosquitto.db"))
        try broker.start()
        try broker.wait(for: "online", at: "\(base)/status", seconds: 180)
        try broker.wait(for: "streaming", at: "\(base)/stage/cam/state")

        // framehost is killed: the last will; and comes back.
        kill(host.pid, SIGKILL)
        _ = try host.finish()
        try broker.wait(for: "offline", at: "\(base)/status")
        let second = try startHost()
        try broker.wait(for: "online", at: "\(base)/status")
        try endCleanly(second)
        // A clean end suppresses the will, and says the same.
        try broker.wait(for: "offline", at: "\(base)/status", seconds: 180)
    }

    @Test(.timeLimit(.minutes(60))) func deliversEachEventAtLeastOnceOverBrokerRestartsAndKnowsRepeatsById() throws {
        try broker.start()
        try writeChain()
        // A reader whose session the broker keeps.
        let first = try broker.subscribe("\(base)/events/#", client: "reader")
        let host = try startHost()
        try broker.wait(for: "online", at: "\(base)/status")
        try post(1...300, host)
        try broker.end(SIGTERM)
        try post(301...600, host)
        try host.waitForError("takes no events")
        try broker.start()
        try post(601...700, host)
        try first.waitForOutput(#""text":"700""#)
        let events = try seen(first.output)
        #expect(Set(events.map(\.number)) == Set(1...700))
        // The library repeats what was in flight, and so does the broker towards its reader.
        #expect(events.count <= 700 + 64)
        let byID = Dictionary(grouping: events, by: \.id)
        #expect(byID.count == 700)
        #expect(byID.values.allSatisfy { Set($0.map(\.number)).count == 1 })
        try endCleanly(host)
        kill(first.pid, SIGTERM)
    }

    @Test(.timeLimit(.minutes(60))) func startsWithoutItsBrokerAndSendsLater() throws {
        try writeChain()
        let host = try startHost()
        let away = "The MQTT server \(broker.address) takes no events: "
        try host.waitForError(away)
        try host.waitForError(" The events wait in the spool (")
        // Where the first try has not ended yet it says so.
        #expect(
            host.error.contains("\(away)Connection refused.") || host.error.contains("\(away)it has not answered yet."),
            "\(host.error)")
        try post(1...50, host)
        // The next run has them too.
        kill(host.pid, SIGKILL)
        _ = try host.finish()
        let next = try startHost()
        try next.waitForError("takes no events")
        try broker.start()
        let reader = try broker.subscribe("\(base)/events/#")
        try next.waitForError(" again.")
        try post(51...60, next)
        try reader.waitForOutput(#""text":"60""#)
        #expect(Set(try seen(reader.output).map(\.number)).isSuperset(of: 51...60))
        try endCleanly(next)
    }

    /// The members that Home Assistant's documentation of device discovery asks for.
    @Test(.timeLimit(.minutes(60))) func publishesWhatHomeAssistantNeedsAndAgainWhenItStarts() throws {
        try broker.start()
        try writeChain()
        let host = try startHost()
        let topic = "homeassistant/device/framehost_porch_door/config"
        try broker.wait(for: "online", at: "\(base)/status")
        let text = try broker.waitForRetained(topic)
        let node = try JSON(parsing: text)
        #expect(node["origin"]["name"].string == "framehost")
        #expect(node["device"]["identifiers"][0].string == "framehost_porch_door")
        #expect(node["availability_topic"].string == "\(base)/status")
        for part in ["state", "problem", "stage_cam", "stage_text", "stage_sink"] {
            #expect(["sensor", "binary_sensor"].contains(node["components"][part]["platform"].string))
            #expect(node["components"][part]["unique_id"].string == "framehost_porch_door_\(part)")
            let state = try #require(node["components"][part]["state_topic"].string)
            _ = try broker.waitForRetained(state)
        }
        let listener = try broker.subscribe("\(base)/state", topic)
        try listener.waitForOutput(topic)
        try listener.waitForOutput("\(base)/state")
        let before = listener.output.split(separator: "\n").count
        let birth = try Tool(name: "mosquitto_pub").run(
            "-p", "\(broker.port)", "-t", "homeassistant/status", "-m", "online")
        #expect(birth.status == 0)
        let deadline = Date() + 180
        while listener.output.split(separator: "\n").count < before + 2, Date() < deadline {
            _ = try? listener.waitForOutput("\u{0}", timeout: 0.2)
        }
        #expect(listener.output.split(separator: "\n").count >= before + 2, "\(listener.output)")
        // A stage that goes takes its sensor along.
        let attached = try host.sendPatiently(
            #"{"command":"attach","at":"cam","copy":true,"stages":[{"id":"more","use":"null-sink"}]}"#)
        #expect(attached["ok"].bool == true, "\(attached)")
        try listener.waitForOutput("stage_more")
        try broker.wait(for: "streaming", at: "\(base)/stage/more/state")
        #expect(try host.sendPatiently(#"{"stage":"more","command":"detach"}"#)["ok"].bool == true)
        try listener.waitForOutput(#""stage_more":{"platform":"sensor"}"#)
        try broker.waitForNothing(at: "\(base)/stage/more/state", before: "\(base)/status")
        try endCleanly(host)
    }
}
