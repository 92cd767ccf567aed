// SPDX-License-Identifier: Apache-2.0

import CV4L2
import Conversion
import FrameCore
import Stills

/// An open camera with the agreed settings. Belongs to the setup thread, then to the stage thread.
final class CameraSession {
    let device: V4L2Device
    let mode: CameraMode
    let layout: DriverLayout
    /// The rate that the driver has set; zero where it does not say.
    let rate: Rational
    let copy: PictureCopy
    let decoder: JPEGDecoder?
    /// Nil where the samples mean the same as the chain was planned for.
    let colors: YUVToYUV?
    private(set) var controls: [CameraControl] = []
    private(set) var queue: CaptureQueue?

    /// Opens and sets the camera.
    ///
    /// - Parameters:
    ///   - mode: Nil for the mode that comes nearest to `asked` and can be converted to `format`.
    ///   - format: The format that the chain was planned for.
    /// - Throws: ``FrameHostError``, or ``CallFault`` for a device that has gone meanwhile.
    init(
        path: String, mode: CameraMode?, asked: AskedMode, format: VideoFormat, calls: any DeviceCalls
    ) throws {
        device = try Self.open(path, calls)
        let planned = PictureSize(format.width, format.height)
        self.mode = try mode ?? Self.mode(of: device, planned, format, asked)
        do {
            layout = try DriverLayout(try device.format(self.mode.code, self.mode.size, isSet: true), of: self.mode)
        } catch let fault as CallFault {
            throw CameraFault.of(fault, path, calls)
        }
        // A driver without this call has one rate (V4L2, VIDIOC_S_PARM).
        rate = (try? device.setRate(self.mode.rate.isZero ? asked.rate : self.mode.rate)) ?? Rational(0)
        copy = PictureCopy(layout)
        var copied = format
        copied.color = layout.videoFormat(rate: Rational(0)).color
        colors = YUVToYUV(from: copied, to: format)
        decoder = self.mode.pixels == .mjpeg ? try JPEGDecoder() : nil
    }

    /// The mode for a chain that was planned without the camera.
    ///
    /// - Throws: ``FrameHostError`` where it has none of the planned size.
    private static func mode(
        of device: V4L2Device, _ planned: PictureSize, _ format: VideoFormat, _ asked: AskedMode
    ) throws -> CameraMode {
        let modes = device.modes(near: asked)
        let fitting = modes.filter { $0.size == planned && PictureCopy.canMake(format, from: $0.pixels) }
        if let mode = FormatChoice.best(of: fitting, for: asked) { return mode }
        guard FormatChoice.best(of: modes, for: asked) != nil else {
            throw CameraFault.noFormat(device.path, asked: asked.pixels, there: device.formats().map(\.code))
        }
        let form = asked.pixels.map { " as \($0.rawValue)" } ?? ""
        throw FrameHostError(
            .unavailable,
            what: "the chain was planned for pictures of \(planned), but '\(device.path)' does not give them\(form)",
            remedy:
                "Set 'size' in the chain file to one that `framehost devices` lists for this camera\(form)\(form.isEmpty ? "" : ", or leave 'format' out").",
            option: "device"
        )
    }

    /// - Throws: ``FrameHostError``.
    static func open(_ path: String, _ calls: any DeviceCalls) throws -> V4L2Device {
        let device: V4L2Device
        do throws(CallFault) {
            device = try V4L2Device(path: path, calls: calls)
        } catch {
            throw CameraFault.of(error, path, calls)
        }
        guard device.identity.isCamera else { throw CameraFault.noCamera(path, device.identity) }
        return device
    }

    /// Sets controls, in order; where the driver has changed a value, `report` gets the result.
    ///
    /// - Throws: ``FrameHostErrors`` for values that do not fit, ``FrameHostError`` for what the driver refuses.
    func set(_ values: ControlValues, report: (_ control: CameraControl, _ asked: Int, _ got: Int) -> Void) throws {
        guard !values.members.isEmpty else { return }
        if controls.isEmpty { controls = device.controls() }
        for (control, number) in try values.settings(controls) {
            do throws(CallFault) {
                let got = try device.set(control, to: number)
                if got != number { report(control, number, got) }
            } catch {
                if error.isLoss { throw CameraFault.of(error, device.path, device.calls) }
                throw FrameHostError(
                    .callFailed, place: "controls.\(control.name)", what: "the camera refuses \(number)",
                    remedy: control.isInactive
                        ? "Switch off the control that sets '\(control.name)' automatically, and name it before '\(control.name)' in 'controls'."
                        : "Use another value from \(control.least) to \(control.most).", cause: error.text)
            }
        }
    }

    /// [stage thread] - Throws: ``CallFault``.
    func begin(depth: Int, lender: BufferLender?) throws(CallFault) -> CaptureQueue {
        let queue = try CaptureQueue(device, layout, depth: depth, lender: lender)
        self.queue = queue
        return queue
    }

    func close() {
        queue?.stop()
        queue = nil
        device.close()
    }
}
