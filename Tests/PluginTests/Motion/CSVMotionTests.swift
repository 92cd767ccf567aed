// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import Motion

@Suite struct CSVMotionTests {
    /// The samples of a text, and the fault that ends it with the number of its line.
    static func read(_ text: String, _ units: MotionUnits = MotionUnits()) -> ([MotionSample], String?, CSVMotion) {
        var parser = CSVMotion(units: units)
        var samples: [MotionSample] = []
        for (index, line) in text.utf8.split(separator: 10, omittingEmptySubsequences: false).enumerated() {
            do throws(MotionFault) {
                if let sample = try parser.take(Array(line)[...]) { samples.append(sample) }
            } catch {
                return (samples, "\(index + 1): \(error.what)", parser)
            }
        }
        return (samples, nil, parser)
    }

    @Test func readsColumnsInAnyOrderAndIgnoresOthers() throws {
        let (samples, fault, parser) = Self.read(
            "note,az,ay,ax, T ,gz,gy,gx\r\nx,9,8,7,0.25,6,5,4\r\n\r\ny,9,8,7,0.5,6,5,4")
        #expect(fault == nil && samples.count == 2)
        let first = try #require(samples.first)
        #expect(first.time == MediaTime(nanoseconds: 250_000_000))
        #expect(first.rotationRate == SIMD3(4, 5, 6) && first.acceleration == SIMD3(7, 8, 9))
        #expect(first.contents == [.rotationRate, .acceleration] && parser.contents == first.contents)
    }

    @Test func aGroupMayBeEmptyInARow() {
        let (samples, fault, _) = Self.read(
            "t,gx,gy,gz,qx,qy,qz,qw\n0,1,2,3,,,,\n1,,,,0,0,0,1\n2,,,,,,,\n3,1,2,3,0,0,1,0")
        #expect(fault == nil)
        #expect(samples.map(\.contents) == [.rotationRate, .attitude, [.rotationRate, .attitude]])
    }

    @Test func turnsUnits() throws {
        let units = MotionUnits(rotation: .degrees, acceleration: .gravities)
        let sample = try #require(Self.read("t,gx,gy,gz,ax,ay,az\n0,180,0,0,1,0,0", units).0.first)
        #expect(abs(sample.rotationRate.x - .pi) < 1e-6 && abs(sample.acceleration.x - 9.80665) < 1e-6)
    }

    /// The example of docs.gyroflow.xyz, shortened.
    @Test func readsAGyroflowLog() throws {
        let (samples, fault, parser) = Self.read(
            """
            GYROFLOW IMU LOG
            version,1.3
            id,custom_logger_name
            orientation,YxZ
            note,development_test
            tscale,0.001
            gscale,0.00122173047
            ascale,0.00048828125
            t,gx,gy,gz,ax,ay,az,mx,my,mz
            0,39,86,183,-1137,-15689,-2986,1,2,3
            1,56,100,202,-1178,-15689,-2986,1,2,3
            """)
        #expect(fault == nil && samples.count == 2)
        #expect(samples[1].time == MediaTime(nanoseconds: 1_000_000))
        #expect(abs(samples[0].rotationRate.x - 39 * 0.00122173047) < 1e-6)
        #expect(abs(samples[0].acceleration.y + 15689 * 0.00048828125 * 9.80665) < 1e-3)
        // Gyroflow's X, Y, Z are the sensor's y, −x, z: up, left and backward. So right is x, down −y, forward −z.
        #expect(try #require(parser.axes).text == "Xyz")
    }

    @Test(arguments: [
        ("", nil),
        ("a,b,c", "1: must be a heading such as t,gx,gy,gz,ax,ay,az, but is 'a,b,c'"),
        ("t,x", "1: must name gx, gy and gz, or ax, ay and az, or qx, qy, qz and qw"),
        ("t,gx,gy", "1: must name all of the columns gx, gy, gz, or none"),
        ("t,gx,gy,gz,t", "1: names the column 't' twice"),
        ("t,gx,gy,gz\n0,1,2", "2: must have 4 columns, as the heading has, but has 3"),
        ("t,gx,gy,gz\n0,1,2,3,4", "2: must have 4 columns, as the heading has, but has 5"),
        ("t,gx,gy,gz\n0,1,2,3\n\n1,1,,3", "4: must have all of gx, gy, gz, or leave all of them empty"),
        ("t,gx,gy,gz\n,1,2,3", "2: has no time: its column 't' is empty"),
        ("t,gx,gy,gz\n0,1,2,1e", "2: has '1e' as 'gz', which must be a number"),
        ("t,gx,gy,gz\n0,1,2,\u{1b}[2J", "2: has '?[2J' as 'gz', which must be a number"),
        ("GYROFLOW IMU LOG\ntscale,0", "2: has the tscale '0', which must be a number other than 0"),
        ("GYROFLOW IMU LOG\ngscale,nan", "2: has the gscale 'nan', which must be a number other than 0"),
        (
            "GYROFLOW IMU LOG\norientation,XYY",
            "2: has the orientation 'XYY', which must be three right-handed axes such as YxZ; the option 'axes' replaces it"
        ),
        (
            "GYROFLOW IMU LOG\norientation,xYZ",
            "2: has the orientation 'xYZ', which must be three right-handed axes such as YxZ; the option 'axes' replaces it"
        ),
        ("GYROFLOW IMU LOG\nversion,1.3\nt,gx", "3: must name all of the columns gx, gy, gz, or none"),
    ])
    func saysWhatIsWrong(text: String, fault: String?) { #expect(Self.read(text).1 == fault) }

    @Test func anOrientationDoesNotMatterWhereTheAxesAreKnown() throws {
        var parser = CSVMotion(isTurned: true)
        for line in ["GYROFLOW IMU LOG", "orientation,nonsense", "t,gx,gy,gz"] {
            _ = try parser.take(Array(line.utf8)[...])
        }
        #expect(parser.axes == nil && parser.hasHeading)
    }

    @Test func anEndlessHeaderEnds() {
        let text = "GYROFLOW IMU LOG\n" + String(repeating: "note,x\n", count: 300)
        #expect(
            Self.read(text).1
                == "202: must be the heading, such as t,gx,gy,gz,ax,ay,az: none of the 200 lines of the header before it is one"
        )
    }

    /// Numbers that no sensor has make samples that the gate leaves out; none makes a fault or a trap.
    @Test(arguments: ["nan", "inf", "-inf", "1e999", "-1e308", "0x1p9999", "1e-400"])
    func impossibleNumbersPassTheParserAlone(number: String) {
        var gate = SampleGate(axes: .same)
        let (samples, fault, _) = Self.read("t,gx,gy,gz\n\(number),1,2,3\n7,\(number),2,3\n9,1,2,3")
        #expect(fault == nil && samples.count == 3)
        let passed = samples.compactMap { gate.pass($0) }
        #expect(passed.last?.time == MediaTime(seconds: 9))
        #expect(gate.invalid + passed.count == 3)
    }

    @Test func neverFallsOverACutOrRandomText() {
        let whole = Array("GYROFLOW IMU LOG\norientation,YxZ\ntscale,1\nt,gx,gy,gz\n1,2,3,4\n".utf8)
        for end in 0...whole.count { _ = Self.read(String(decoding: whole[..<end], as: UTF8.self)) }
        let pieces = ["t", ",", "gx", "gy", "gz", "\n", "0", "-", "1e9", "nan", "GYROFLOW IMU LOG", "\0", "é", " "]
        var dice = SystemRandomNumberGenerator()
        for _ in 0..<5000 {
            let text = (0..<20).map { _ in pieces.randomElement(using: &dice)! }.joined()
            _ = Self.read("t,gx,gy,gz\n" + text)
            _ = Self.read(text)
        }
    }
}

@Suite struct SampleGateTests {
    private func sample(_ seconds: Double, _ rate: SIMD3<Float> = SIMD3(1, 2, 3)) -> MotionSample {
        var sample = MotionSample(time: MediaTime(seconds: seconds))
        sample.contents = .rotationRate
        sample.rotationRate = rate
        return sample
    }

    @Test func leavesOutWhatDoesNotRise() {
        var gate = SampleGate(axes: .same)
        let times = [0, 1, 1, 0.5, 2, -1, 3].compactMap { gate.pass(sample($0))?.time.seconds }
        #expect(times == [0, 1, 2, 3] && gate.late == 3 && gate.invalid == 0)
    }

    @Test(arguments: [2001, -2001, Float.nan, .infinity]) func leavesOutRatesBeyondAnySensor(value: Float) {
        var gate = SampleGate(axes: .same)
        #expect(gate.pass(sample(0, SIMD3(0, value, 0))) == nil && gate.invalid == 1)
        // Its time does not count either.
        #expect(gate.pass(sample(0)) != nil)
    }

    @Test func leavesOutAccelerationsAndAttitudesThatAreNone() {
        var gate = SampleGate(axes: .same)
        var push = MotionSample(time: .zero)
        push.contents = .acceleration
        push.acceleration = SIMD3(0, 0, 10_001)
        #expect(gate.pass(push) == nil)
        var turn = MotionSample(time: .zero)
        turn.contents = .attitude
        turn.attitude = Quaternion(x: 0, y: 0, z: 0, w: 0)
        #expect(gate.pass(turn) == nil)
        turn.attitude = Quaternion(x: .nan, y: 0, z: 0, w: 1)
        #expect(gate.pass(turn) == nil)
        turn.attitude = Quaternion(x: 0, y: 0, z: 0, w: 20)
        #expect(gate.pass(turn)?.attitude == .identity)
        #expect(gate.pass(MotionSample(time: MediaTime(seconds: 1))) == nil && gate.invalid == 4)
    }

    @Test func turnsAPhoneToThePicture() throws {
        // Held upright: its y points up, and gravity pushes it up.
        var gate = SampleGate(axes: try #require(AxisMap("Xyz")))
        var still = MotionSample(time: .zero)
        still.contents = [.acceleration, .attitude]
        still.acceleration = SIMD3(0, 9.81, 0)
        // From the phone's axes to a world with z up: y becomes z, a quarter turn about x.
        still.attitude = Quaternion(rotation: SIMD3(.pi / 2, 0, 0))
        let passed = gate.pass(still)
        let turned = try #require(passed)
        #expect(turned.acceleration == SIMD3(0, -9.81, 0))
        // Both say the same: up is −y of the picture.
        let up = turned.attitude.inverse.turned(SIMD3(0, 0, 1))
        #expect(abs(up.x) < 1e-6 && abs(up.y + 1) < 1e-6 && abs(up.z) < 1e-6)
    }

    @Test func eachRightHandedMapIsTheRotationItSays() throws {
        let letters = ["X", "x", "Y", "y", "Z", "z"]
        var count = 0
        for a in letters {
            for b in letters {
                for c in letters {
                    guard let map = AxisMap(a + b + c), !map.isMirror else { continue }
                    count += 1
                    #expect(map.text == a + b + c)
                    let vector = SIMD3<Float>(1, 2, 3)
                    let back = map.toSensor.turned(map.picture(vector))
                    #expect(abs(back.x - 1) + abs(back.y - 2) + abs(back.z - 3) < 1e-5, "\(map.text)")
                }
            }
        }
        #expect(count == 24)
        #expect(AxisMap("XYZ") == .same && AxisMap("yxz") == .gyroflow)
        for wrong in ["", "XY", "XYZX", "XXY", "XYW", "12 3", "ÄYZ"] { #expect(AxisMap(wrong) == nil) }
    }
}
