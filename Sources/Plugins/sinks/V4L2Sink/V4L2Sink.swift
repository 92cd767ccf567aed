// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

struct V4L2SinkOptions: StageOptions {
    @Option(help: "The virtual camera: its path, its name or a part of the name. Default: the first one.") var device:
        String? =
            nil

    func validate() throws(OptionFault) {
        if device == "" {
            throw OptionFault(
                "'device' must not be empty", remedy: "Name a device, or leave 'device' out.", options: ["device"])
        }
        if device?.utf8.contains(0) == true {
            throw OptionFault(
                "'device' must not contain the character U+0000", remedy: "Remove its \\u0000.", options: ["device"])
        }
    }
}

/// Gives the pictures to a virtual camera (v4l2loopback), which other programs open as a webcam.
///
/// docs/design/020-pictures-and-pipes.md.
final class V4L2Sink: Sink {
    static let info = StageInfo(
        id: "v4l2-sink", summary: "Writes the pictures to a virtual camera, for OBS, video calls and browsers.",
        input: .video(.yuyv, .i420, .nv12), events: [OrientationWatch.event])

    var options: V4L2SinkOptions
    private let context: StageContext
    private let calls = OutputCallsInUse.current
    private var format: VideoFormat?
    private var lying = OrientationWatch(.up)
    private var path = ""
    private var device: OutputDevice?
    private var layout = OutputDevice.Layout(strideBytes: 0, byteCount: 0)

    /// [control thread] Opens nothing.
    init(options: V4L2SinkOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    /// [control thread] Looks for the device and asks it for the format; sets nothing.
    func negotiate(_ input: MediaFormat) throws {
        guard let video = input.video else {
            throw FrameHostError(.broken, what: "v4l2-sink was handed access units")
        }
        guard video.width % 2 == 0, video.height % 2 == 0 else { throw OutputFault.oddSides(video) }
        let found = try OutputDevice.find(options.device, calls)
        layout = try found.agree(on: video, isSet: false)
        (format, path) = (video, found.path)
        lying = OrientationWatch(video.orientation)
        context.note("\(found.name) (\(found.path)): \(video.pixelFormat.rawValue) \(video.width)x\(video.height)")
        if video.orientation != .up {
            context.note(
                "the pictures are stored \(video.orientation), and a virtual camera cannot say so: other programs will not show them upright. Put 'crop-orient' before this stage to bring them upright",
                isWarning: true)
        }
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.claims = [
            StageDemand.Claim(
                "camera \(Self.realPath(path) ?? path)", option: "device", what: "uses the camera '\(path)', as does",
                remedy: "Give each stage its own camera: v4l2loopback makes several with 'devices=2'.")
        ]
        return demand
    }

    /// The path without symbolic links, as `v4l2-source` names its camera; nil where there is none.
    private static func realPath(_ path: String) -> String? {
        guard let real = realpath(path, nil) else { return nil }
        defer { free(real) }
        return String(cString: real)
    }

    /// [setup thread] Opens the device and sets its format.
    func start() throws {
        guard let format else {
            throw FrameHostError(.broken, what: "v4l2-sink was started before its device was chosen")
        }
        let device = try OutputDevice(path, calls)
        layout = try device.agree(on: format, isSet: true)
        device.set(rate: format.frameRate)
        try device.begin(layout)
        self.device = device
    }

    /// [stage thread] Gives the device one picture. The device keeps the newest, whether a program reads it or not.
    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        guard case .frame(let frame) = consume input, let device else {
            throw FrameHostError(.broken, what: "v4l2-sink was handed access units")
        }
        if let notice = lying.notice(frame) {
            context.post(
                "orientation-not-carried", level: .warning,
                text:
                    "\(notice) A virtual camera cannot say so, and other programs show them turned wrongly. To have all pictures upright, put a 'crop-orient' with a 'size' before this stage."
            )
        }
        let isShown = try device.show(layout, unless: { context.isStopped }) { copy(frame, to: $0) }
        guard isShown else { throw FrameHostError(.stopped, what: "stopped while '\(path)' took no picture") }
        return .delivered
    }

    /// Copies the rows into the layout that the device wants.
    private func copy(_ frame: borrowing Frame, to base: UnsafeMutableRawPointer) {
        var target = base.assumingMemoryBound(to: UInt8.self)
        for index in 0..<frame.planeCount {
            let stride = OutputDevice.stride(frame.format.pixelFormat, plane: index, first: layout.strideBytes)
            frame.withPlane(index) { plane in
                for y in 0..<plane.height {
                    (target + y * stride).update(from: plane.baseAddress + y * plane.strideBytes, count: plane.rowBytes)
                }
                target += stride * plane.height
            }
        }
    }

    /// [stage thread]
    func stop() {
        device?.close()
        device = nil
    }
}
