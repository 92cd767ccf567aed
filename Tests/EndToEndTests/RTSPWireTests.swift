// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// tshark as the referee of what is on the wire.
@Suite(.serialized) struct RTSPWireTests {
    private struct Packet {
        var sequence: UInt16
        var time: UInt32
        var isMarked: Bool
    }

    /// In a network of its own, where the kernel cuts what was sent with `UDP_SEGMENT` before the capture sees it.
    @Test(.needs(.tshark), .needs(.ffmpeg), .needsOwnNetwork, arguments: ["tcp", "udp"])
    func findsNothingWrong(transport: String) throws {
        let workspace = try Workspace()
        try workspace.write("chain.json", Self.chain)
        let script = try workspace.write("capture.sh", Self.script)
        let outcome = try Tool.unshare.run(
            ["-rn", "/bin/sh", script, workspace.folder.path, try Repository.executable.path, transport], timeout: 600)
        #expect(outcome.status == 0, "\(outcome.error.suffix(2000))")
        func lines(_ name: String) throws -> [Substring] {
            String(decoding: try workspace.data(name), as: UTF8.self).split(separator: "\n")
        }
        #expect(try lines("wrong.txt") == [])
        // The first sender report comes with the stream.
        #expect(try lines("reports.txt").filter { $0.hasPrefix("200,202") }.count >= 1)
        let packets = try lines("packets.txt").flatMap(Self.packets)
        #expect(packets.count >= 75)
        for (packet, next) in zip(packets, packets.dropFirst()) {
            #expect(next.sequence == packet.sequence &+ 1)
            #expect(packet.isMarked == (packet.time != next.time))
        }
        #expect(Set(packets.map(\.time)).count >= 75)
    }

    /// A frame of the capture: over TCP it may have several packets. Without the one by which FFmpeg opens a firewall,
    /// whose source is 0.
    private static func packets(_ line: Substring) -> [Packet] {
        let columns = line.split(separator: " ").map { $0.split(separator: ",") }
        guard columns.count == 4, columns[0].first != "0x00000000" else { return [] }
        return columns[1].indices.compactMap { index in
            guard let sequence = UInt16(columns[1][index]), let time = UInt32(columns[2][index]) else { return nil }
            return Packet(sequence: sequence, time: time, isMarked: columns[3][index] == "1")
        }
    }

    private static let chain = """
        {
          "stages": [
            { "id": "camera", "use": "test-source", "size": "320x240", "rate": 50, "live": true },
            { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "bitrateKbps": 4000, "keyframeSeconds": 0.5 },
            { "id": "live", "use": "rtsp-sink", "port": 8554, "path": "/live" }
          ]
        }
        """

    /// Folder, program, transport.
    private static let script = """
        set -e
        cd "$1"
        ip link set lo up gso_max_segs 1
        "$2" chain.json > framehost.txt 2>&1 &
        host=$!
        show() { tshark -r wire.pcapng -d tcp.port==8554,rtsp "$@" 2> /dev/null; }
        capture() {
          tshark -q -B 64 -i lo -w wire.pcapng > tshark.txt 2>&1 &
          shark=$!
        }
        capture
        for attempt in $(seq 300); do
          # It may fail to begin while another one does.
          kill -0 $shark 2> /dev/null || { cat tshark.txt >&2; capture; }
          # It says that it captures before it does: without the SETUP nobody knows what is RTP.
          bash -c 'echo ready > /dev/udp/127.0.0.1/9' || true
          if grep -q "Readers can open" framehost.txt && show -Y "udp.dstport == 9" | grep -q .; then break; fi
          sleep 0.2
        done
        ffmpeg -nostdin -v error -rtsp_transport "$3" -i rtsp://127.0.0.1:8554/live -frames:v 100 -f null -
        # Its last word, and so all before it is in the file.
        for attempt in $(seq 300); do
          if show -Y "rtsp.method == TEARDOWN" | grep -q .; then break; fi
          sleep 0.2
        done
        kill -INT $shark || cat tshark.txt >&2
        wait $shark || true
        kill -INT $host
        status=0
        wait $host || status=$?
        # 1 where the machine had no time for all pictures.
        if [ $status -ne 0 ]; then
          cat framehost.txt >&2
          test $status -eq 1
          grep -q "the live chain lost" framehost.txt
          if grep -q ^error framehost.txt; then exit 1; fi
        fi
        show -Y "(rtp || rtcp) && (_ws.malformed || _ws.expert.severity >= 0x600000)" > wrong.txt
        show -Y rtcp -T fields -E separator=/s -E occurrence=a -e rtcp.pt > reports.txt
        show -Y rtp -T fields -E separator=/s -E occurrence=a -e rtp.ssrc -e rtp.seq -e rtp.timestamp -e rtp.marker > packets.txt
        """
}

extension Tool {
    static let tshark = Tool(name: "tshark")
    static let mkvinfo = Tool(name: "mkvinfo")
    static let unshare = Tool(name: "unshare")
    /// Whether this user may have a network of its own (network_namespaces(7)); some containers forbid it.
    fileprivate static let hasOwnNetwork =
        (try? unshare.run("-rn", "ip", "link", "set", "lo", "up", "gso_max_segs", "1"))?.status == 0
}

extension Trait where Self == ConditionTrait {
    fileprivate static var needsOwnNetwork: Self {
        .enabled(
            if: Tool.hasOwnNetwork || Tool.isCI,
            "this machine allows no network namespace (unshare -rn), or has no iproute2")
    }
}
