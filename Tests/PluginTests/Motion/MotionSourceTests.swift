// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Glibc
import Testing

@testable import Motion

@Suite struct MotionFileTests {
    /// A folder of its own with one file.
    private func folder(_ name: String, _ bytes: some Sequence<UInt8>) throws -> String {
        let folder = NSTemporaryDirectory() + "motion-source-test-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try Data(bytes).write(to: URL(fileURLWithPath: "\(folder)/\(name)"))
        return folder
    }

    private struct Played {
        var samples: [MotionSample] = []
        /// Samples of each block.
        var blocks: [Int] = []
        var fault: String?
        var events: [Event] = []
        var format: MotionFormat?
    }

    private func play(_ options: String, _ folder: String = ".") throws -> Played {
        let driver = try StageDriver(MotionSource.self, options: options, folder: folder)
        var played = Played()
        played.format = driver.outputFormat?.motion
        while true {
            var progress = SourceProgress.ended
            do { progress = try driver.produce() } catch { played.fault = "\(error)" }
            while let block = driver.takeMotionBlock() {
                #expect(block.sampleCount > 0 && block.duration < BlockCutter.longest)
                #expect(block.pts == block[0].time)
                played.blocks.append(block.sampleCount)
                for index in 0..<block.sampleCount { played.samples.append(block[index]) }
            }
            if progress == .ended || played.fault != nil { break }
        }
        played.events = driver.takeEvents()
        try driver.stop()
        return played
    }

    @Test func playsCSVInBlocksOfTwentyMilliseconds() throws {
        let rows = (0..<50).map { "\(Double($0) / 200),1,2,3\n" }.joined()
        let folder = try folder("m.csv", Array("t,gx,gy,gz\n\(rows)".utf8))
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let played = try play(#"{ "path": "m.csv" }"#, folder)
        #expect(played.fault == nil && played.samples.count == 50)
        #expect(played.blocks == [Int](repeating: 4, count: 12) + [2])
        #expect(played.samples.map(\.time.nanoseconds) == (0..<50).map { $0 * 5_000_000 })
        #expect(played.format == MotionFormat(contents: .rotationRate, sampleRate: 200))
    }

    @Test func turnsAxesAndUnits() throws {
        let folder = try folder("m.csv", Array("t,gx,gy,gz,ax,ay,az\n0,180,0,90,0,1,0\n".utf8))
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let sample = try #require(
            try play(
                #"{ "path": "m.csv", "axes": "Xyz", "rotationUnit": "deg/s", "accelerationUnit": "g" }"#, folder
            ).samples.first)
        #expect(abs(sample.rotationRate.x - .pi) < 1e-5 && abs(sample.rotationRate.z + .pi / 2) < 1e-5)
        #expect(sample.acceleration == SIMD3(0, -9.80665, 0))
    }

    @Test func leavesOutWhatIsImpossibleAndSaysSo() throws {
        let folder = try folder("m.csv", Array("t,gx,gy,gz\n0,1,1,1\n1,nan,1,1\n2,1,1,3000\n3,1,1,1\n2,1,1,1\n".utf8))
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let played = try play(#"{ "path": "m.csv" }"#, folder)
        #expect(played.samples.map(\.time.seconds) == [0, 3] && played.fault == nil)
        let texts = played.events.filter { $0.name == "samples-left-out" }.map(\.text)
        #expect(
            texts == [
                "Samples were left out: 2 samples with an impossible value (not finite, or beyond 2000 rad/s or 10000 m/s²), and 1 sample not later than the sample before. Check the values and, for CSV and JSON, 'rotationUnit' and 'accelerationUnit'. Check the times that the file or the sensor gives."
            ])
    }

    @Test func givesWhatComesBeforeDamage() throws {
        let folder = try folder("m.csv", Array("t,gx,gy,gz\n0,1,1,1\n0.001,1,1,1\n0.002,1,".utf8))
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let played = try play(#"{ "path": "m.csv" }"#, folder)
        #expect(played.samples.count == 2)
        #expect(
            played.fault
                == "motion-source (motion-source): frame 1: path: line 4 of 'FOLDER/m.csv' (byte 31) must have 4 columns, as the heading has, but has 3 (the file ends in this line). The 2 samples before the fault were passed on. Correct this line, or remove it."
                .replacingOccurrences(of: "FOLDER", with: folder))
    }

    @Test(arguments: [
        ("m.csv", "", "has no samples of motion"), ("m.csv", "t,gx,gy,gz\n", "has no samples of motion"),
        ("m.csv", "x", "(byte 0) must be a heading"),
        ("m.jsonl", "\n\n", "has no samples of motion"),
        ("m.jsonl", "{\"gyro\":[1,2,3]}\n", "line 1 of"), ("m.jsonl", "nonsense", "(the file ends in this line)"),
        ("m.mp4", "nonsense", "is not an MP4 or MOV file"), ("m.mov", "", "is not an MP4 or MOV file"),
        ("m.csv", "t,gx,gy,gz\n0,1,1,\(String(repeating: "1", count: 5000))\n", "must have at most 4096 bytes"),
    ]) func refusesWhatIsNoMotion(name: String, text: String, fault: String) throws {
        let folder = try folder(name, Array(text.utf8))
        defer { try? FileManager.default.removeItem(atPath: folder) }
        #expect {
            _ = try StageDriver(MotionSource.self, options: #"{ "path": "\#(name)" }"#, folder: folder)
        } throws: { "\($0)".contains(fault) && "\($0)".hasPrefix("path: ") }
    }

    @Test func saysWhatIsWrongWithAPath() throws {
        func fault(_ path: String) -> String {
            do { _ = try StageDriver(MotionSource.self, options: #"{ "path": "\#(path)" }"#) } catch {
                return "\(error)"
            }
            return ""
        }
        #expect(fault("/nowhere/m.csv") == "path: '/nowhere/m.csv' does not exist. Correct 'path'.")
        #expect(fault("nowhere.csv").contains("A relative path starts at the chain file's folder."))
        let folder = try folder("x", [])
        defer { try? FileManager.default.removeItem(atPath: folder) }
        mkdir("\(folder)/d.csv", 0o700)
        mkfifo("\(folder)/p.csv", 0o600)
        #expect(fault("\(folder)/d.csv").contains("must be a regular file, but is a folder"))
        #expect(fault("\(folder)/p.csv").contains("must be a regular file, but is a device, a pipe or a socket"))
    }

    @Test func playsJSONLinesAndMergesAPhonesSensors() throws {
        let lines = (0..<20).map { index in
            #"{"type":"android.sensor.gyroscope","timestamp":\#(index * 10_000_000),"values":[1,2,3]}"# + "\n"
                + #"{"type":"android.sensor.accelerometer","timestamp":\#(index * 10_000_000 + 5_000_000),"values":[0,9.8,\#(index)]}"#
                + "\n"
        }
        let folder = try folder("m.jsonl", Array(lines.joined().utf8))
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let played = try play(#"{ "path": "m.jsonl" }"#, folder)
        #expect(played.fault == nil && played.samples.count == 20)
        #expect(played.samples.allSatisfy { $0.contents == [.rotationRate, .acceleration] })
        #expect(abs(played.samples[10].acceleration.z - 9.5) < 1e-4)
    }

    /// As Tests/Fixtures/motion/make.py wrote it, by the layout that ExifTool reads.
    @Test func playsGPMF() throws {
        let played = try play(#"{ "path": "\#(MotionFixture.path("hero.mp4"))" }"#)
        #expect(played.fault == nil && played.events.filter { $0.level == .warning }.isEmpty)
        #expect(played.samples.map(\.time.nanoseconds) == (0..<200).map { $0 * 5_000_000 })
        #expect(played.format?.contents == [.rotationRate, .acceleration])
        for (index, sample) in played.samples.enumerated() {
            // (0.1, 0.2, 0.3 + i/1000) along the sensor's axes, of which y points right, −z down, −x forward.
            let rate = SIMD3<Float>(0.2, -(0.3 + Float(index) / 1000), -0.1)
            #expect(distance(sample.rotationRate, rate) < 1e-3)
            let push = SIMD3<Float>(-9.81, -min(Float(index) / 200, 0.99), 0)
            #expect(distance(sample.acceleration, push) < 4e-3, "\(index): \(sample.acceleration)")
        }
    }

    @Test func playsCAMM() throws {
        let played = try play(#"{ "path": "\#(MotionFixture.path("camm.mov"))" }"#)
        #expect(played.fault == nil && played.events.filter { $0.level == .warning }.isEmpty)
        #expect(played.samples.map(\.time.nanoseconds) == (0..<200).map { $0 * 5_000_000 })
        for (index, sample) in played.samples.enumerated() {
            let rate = SIMD3<Float>(0.1, 0.2, 0.3 + Float(index) / 1000)
            #expect(distance(sample.rotationRate, rate) < 1e-6)
            #expect(sample.contents.isSuperset(of: [.rotationRate, .acceleration]))
        }
        // One attitude, 5 ms after the last rate: a turn of 0.5 rad about z.
        let last = try #require(played.samples.last)
        #expect(last.contents.contains(.attitude) && abs(last.attitude.rotation.z - 0.5) < 1e-5)
    }

    /// Cut anywhere: samples and a fault, or a fault alone.
    @Test func containersMayBeCutAnywhere() throws {
        for name in ["hero.mp4", "camm.mov", "hero-fast.mp4", "camm-fast.mov"] {
            let whole = try MotionFixture.bytes(name)
            for end in stride(from: whole.count - 1, to: 0, by: -97) {
                let folder = try folder(name, whole[..<end])
                defer { try? FileManager.default.removeItem(atPath: folder) }
                do {
                    let played = try play(#"{ "path": "\#(name)" }"#, folder)
                    let fault = try #require(played.fault, "\(name) cut at \(end)")
                    #expect(fault.contains("ends within its motion") && fault.contains("before the end were passed on"))
                    #expect(!played.samples.isEmpty && played.samples.count <= 200)
                } catch {
                    #expect("\(error)".hasPrefix("path: "))
                }
            }
        }
    }

    @Test func aPayloadThatIsDamagedSaysAtWhichByte() throws {
        var bytes = try MotionFixture.bytes("hero.mp4")
        // The count of the second payload's ACCL.
        let found = bytes.indices.dropFirst(1200).first {
            Array(bytes[$0..<min($0 + 4, bytes.count)]) == Array("ACCL".utf8)
        }
        let place = try #require(found)
        bytes[place + 6] = 255
        let folder = try folder("m.mp4", bytes)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let played = try play(#"{ "path": "m.mp4" }"#, folder)
        #expect(played.samples.count == 200)
        #expect(
            played.fault?.contains(
                "at 0.5 s (byte \(place)) has an item 'ACCL' of 391980 bytes, but room for only 300 bytes") == true,
            "\(played.fault ?? "")")
    }

    @Test func inRealTimeABlockWaitsForItsTime() throws {
        let folder = try folder("m.csv", Array("t,gx,gy,gz\n5,1,2,3\n7,1,2,3\n".utf8))
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let clock = ManualClock(at: 1_000_000_000)
        let driver = try StageDriver(
            MotionSource.self, options: #"{ "path": "m.csv", "pace": "realtime" }"#, folder: folder, clock: clock)
        #expect(driver.stage.demand.isPaced && !driver.stage.demand.isLive)
        while try driver.produce() == .more {}
        #expect(clock.now() == 3_000_000_000)
        #expect(driver.takeMotionBlock()?.pts == MediaTime(seconds: 5))
    }

    @Test(arguments: [
        ("{}", "'path', 'listen' or 'device' is missing"),
        (
            #"{ "path": "a.csv", "device": "x" }"#,
            "only one of 'path', 'listen' and 'device' may be set, but 2 are"
        ),
        (#"{ "path": "a.txt" }"#, "must end in .csv, .gcsv, .jsonl, .mp4 or .mov"),
        (#"{ "path": "" }"#, "'path' must name a file, but is empty"),
        (#"{ "listen": ":5555" }"#, "must be a numeric address with a port"),
        (
            #"{ "listen": "localhost:5555" }"#,
            "the address in 'localhost:5555' must be an IP address, not a name and without a zone"
        ),
        (#"{ "listen": "127.0.0.1:0" }"#, "the port in '127.0.0.1:0' must be from 1 to 65535"),
        (#"{ "listen": "127.0.0.1:65536" }"#, "the port in '127.0.0.1:65536' must be from 1 to 65535"),
        (#"{ "listen": "::1:5555" }"#, "the IPv6 address in '::1:5555' must be in brackets"),
        (#"{ "device": "../x" }"#, "must be the name of an IIO device, but is '../x'"),
        (#"{ "listen": "127.0.0.1:5555", "pace": "realtime" }"#, "'pace' is only for a file ('path')"),
        (#"{ "listen": "127.0.0.1:5555", "rate": 100 }"#, "'rate' is only for an IIO device ('device')"),
        (#"{ "path": "a.csv", "axes": "XYY" }"#, "'XYY' must name each of the axes x, y and z once"),
        (#"{ "path": "a.csv", "axes": "xYZ" }"#, "'xYZ' is left-handed"),
    ]) func refusesOptions(options: String, fault: String) {
        #expect { _ = try StageDriver(MotionSource.self, options: options) } throws: { "\($0)".contains(fault) }
    }
}
