// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Where the kernel shows IIO devices; other folders in tests.
struct IIOPlaces: Sendable {
    var devices = "/sys/bus/iio/devices"
    var nodes = "/dev"
}

/// Why an IIO device cannot be used.
struct IIOFault: Error, Equatable {
    /// What happened, without a full stop.
    var what: String
    var remedy = ""
    /// Whether the device is missing, so that it may come later.
    var isMissing = false

    var error: FrameHostError {
        FrameHostError(
            isMissing ? .unavailable : .callFailed, place: "device", what: what, remedy: remedy)
    }
}

/// An IIO device: its attributes in sysfs, and its buffer. The only file that knows the kernel's names.
/// Documentation/ABI/testing/sysfs-bus-iio of Linux.
///
/// Used by one thread at a time.
final class IIODevice {
    /// `iio:device0`.
    let id: String
    /// What its driver calls it: `gyro_3d`.
    let name: String
    private let folder: String
    private let node: String
    private var descriptor: Int32 = -1
    /// Samples per second; 0 where the device does not say.
    private(set) var rate = 0.0
    /// How a scan is laid out, once the buffer runs.
    private(set) var layout: IIOLayout?

    /// The most bytes of an attribute.
    private static let mostAttributeBytes = 4096

    /// [any thread] Finds the device, and changes nothing on it.
    ///
    /// - Parameter wanted: `iio:deviceN`, or what the driver calls it.
    init(_ wanted: String, places: IIOPlaces) throws(IIOFault) {
        let ids = Self.entries(of: places.devices).filter { $0.hasPrefix("iio:device") }.sorted()
        func name(of id: String) -> String { Self.read("\(places.devices)/\(id)/name") ?? id }
        guard let found = ids.first(where: { $0 == wanted || name(of: $0) == wanted }) else {
            let usable = ids.filter { (try? IIODevice($0, places: places)) != nil }
            let there = usable.map { "\(name(of: $0)) (\($0))" }
            throw IIOFault(
                what: "there is no IIO device '\(wanted)'",
                remedy: there.isEmpty
                    ? "Connect a motion sensor that has an IIO driver: \(places.devices) lists none now."
                    : "Name one that measures motion: \(there.joined(separator: ", ")).", isMissing: true)
        }
        id = found
        self.name = name(of: found)
        folder = "\(places.devices)/\(found)"
        node = "\(places.nodes)/\(found)"
        guard !channels().isEmpty else {
            throw IIOFault(
                what:
                    "the IIO device '\(self.name)' has no buffer with rotation rates or accelerations on three axes, or with an attitude",
                remedy: "Name another IIO device.")
        }
        rate = readRate()
    }

    deinit { close() }

    /// Whether it is still there: its node does not tell when it is pulled.
    var isThere: Bool { access(folder, F_OK) == 0 }

    /// What its channels measure.
    var contents: MotionSample.Contents { IIOLayout(channels())?.contents ?? [] }

    // MARK: Buffer

    /// [setup or stage thread] Sets the device up and begins to capture.
    ///
    /// - Parameter rate: Samples per second; nil for what it is set to.
    func open(rate wanted: Double?) throws(IIOFault) {
        // Another program may have left it running. The kernel refuses this while a program uses it.
        _ = write("buffer/enable", "0")
        // The default is the wall clock (current_timestamp_clock). Old kernels have no other.
        _ = write("current_timestamp_clock", "monotonic")
        if let wanted { try setRate(wanted) }
        rate = readRate()
        let channels = channels()
        // Another program may have left others on, which would lie between these in each scan.
        for other in enabledNames() where !channels.contains(where: { $0.name == other }) {
            if let code = write("scan_elements/\(other)_en", "0") { throw unset(code, "scan_elements/\(other)_en") }
        }
        for channel in channels {
            if let code = write("scan_elements/\(channel.name)_en", "1") {
                throw unset(code, "scan_elements/\(channel.name)_en")
            }
        }
        guard var layout = IIOLayout(channels) else {
            throw IIOFault(
                what: "the channels of '\(name)' do not fit together in a scan that can be read",
                remedy: "Name another IIO device.")
        }
        layout.rotation = sensor("in_anglvel")
        layout.acceleration = sensor("in_accel")
        self.layout = layout
        chooseTrigger()
        let perSecond = rate > 0 ? min(rate, 100_000) : 1000
        // At least a second: when the buffer is full, the newest are lost.
        _ = write("buffer/length", String(Int(max(2 * perSecond, 64))))
        // One wake-up every 20 ms, which is the length of a block.
        _ = write("buffer/watermark", String(Int(max(perSecond / 50, 1))))
        if let code = write("buffer/enable", "1") { throw unset(code, "buffer/enable") }
        descriptor = Glibc.open(node, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            let code = errno
            _ = write("buffer/enable", "0")
            throw refused(
                code, "the sensor '\(name)' (\(id)) cannot be opened at \(node)",
                missing: code == ENOENT
                    ? "Check that \(node) exists. In a container, add it with `--device`."
                    : "Check that the device is still connected.")
        }
    }

    /// [stage thread] Ends capturing. A second call does no harm.
    func close() {
        guard descriptor >= 0 else { return }
        Glibc.close(descriptor)
        descriptor = -1
        _ = write("buffer/enable", "0")
    }

    enum Reading: Equatable {
        /// The number of bytes, which make whole scans.
        case bytes(Int)
        case nothing
        /// It is gone, with an errno.
        case gone(Int32)
    }

    /// [stage thread] Waits for data, for at most ``LiveWait/milliseconds``.
    func wait() {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = SystemCall.retrying { poll(&entry, 1, LiveWait.milliseconds) }
    }

    /// [stage thread] Reads what is there into `bytes`, from its start.
    func read(into bytes: inout [UInt8]) -> Reading {
        let size = layout?.scanBytes ?? 1
        let most = bytes.count / size * size
        let count = Glibc.read(descriptor, &bytes, most)
        if count > 0 { return .bytes(count / size * size) }
        if count == 0 { return .gone(ENODEV) }
        let code = errno
        return code == EAGAIN || code == EINTR ? .nothing : .gone(code)
    }

    // MARK: Attributes

    private func unset(_ code: Int32, _ attribute: String) -> IIOFault {
        let what = "'\(attribute)' of the sensor '\(name)' (\(id)) cannot be set"
        if code == EROFS || (geteuid() == 0 && (code == EACCES || code == EPERM)) {
            return IIOFault(
                what: "\(what): \(ErrorText.of(code))",
                remedy:
                    "Let this container or service write to /sys (Docker: `--privileged`), or run framehost outside of it."
            )
        }
        if code == EINVAL, attribute == "buffer/enable" {
            return IIOFault(
                what: "\(what): \(ErrorText.of(code))",
                remedy:
                    "Write the name of a trigger to \(folder)/trigger/current_trigger, since the device may need one: `cat /sys/bus/iio/devices/trigger*/name` lists them. If there is none, make one with `modprobe iio-trig-hrtimer` and `mkdir /sys/kernel/config/iio/triggers/hrtimer/t1`."
            )
        }
        return refused(code, what, missing: "Check that the device is still connected.")
    }

    /// - Parameter missing: The remedy where something is missing.
    private func refused(_ code: Int32, _ what: String, missing: String) -> IIOFault {
        let cause = "\(what): \(ErrorText.of(code))"
        switch code {
        case EACCES, EPERM:
            guard geteuid() != 0 else {
                return IIOFault(
                    what: cause, remedy: "Give the device to this container or service (`--device`, `DeviceAllow=`).")
            }
            return IIOFault(
                what: cause,
                remedy:
                    "Run framehost as root, or give this user the right to set up and read the device, with a udev rule."
            )
        case EBUSY:
            return IIOFault(what: cause, remedy: "End the program that reads the device: only one program can read it.")
        case ENOENT, ENODEV, ENXIO:
            return IIOFault(what: cause, remedy: missing, isMissing: true)
        default: return IIOFault(what: cause, remedy: "Check `dmesg` for messages of its driver.")
        }
    }

    private static let names =
        ["x", "y", "z"].flatMap { ["in_anglvel_\($0)", "in_accel_\($0)"] } + ["in_rot_quaternion", "in_timestamp"]

    /// The channels of sensors that have all of their axes, and of the time.
    private func channels() -> [IIOLayout.Channel] {
        let found = Self.names.compactMap { name -> IIOLayout.Channel? in
            guard let index = Self.read("\(folder)/scan_elements/\(name)_index").flatMap({ Int($0) }),
                0..<65_536 ~= index,
                let element = Self.read("\(folder)/scan_elements/\(name)_type").flatMap({ IIOElement($0) })
            else { return nil }
            return IIOLayout.Channel(name: name, index: index, element: element)
        }
        let whole = found.filter { channel in
            guard let sensor = ["in_anglvel", "in_accel"].first(where: { channel.name.hasPrefix($0) }) else {
                return true
            }
            return found.count { $0.name.hasPrefix(sensor) } == 3
        }
        return whole.contains { $0.name != "in_timestamp" } ? whole : []
    }

    /// The names of all channels that are in the scan now.
    private func enabledNames() -> [String] {
        guard let folder = opendir("\(folder)/scan_elements") else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard name.hasSuffix("_en"), Self.read("\(self.folder)/scan_elements/\(name)") == "1" else { continue }
            names.append(String(name.dropLast(3)))
        }
        return names
    }

    private func sensor(_ prefix: String) -> IIOLayout.Sensor {
        var sensor = IIOLayout.Sensor()
        func number(_ attribute: String) -> Float? {
            let text = Self.read("\(folder)/\(prefix)_\(attribute)") ?? Self.read("\(folder)/\(prefix)_x_\(attribute)")
            return text.flatMap { Float($0) }.flatMap { $0.isFinite ? $0 : nil }
        }
        sensor.scale = number("scale") ?? 1
        sensor.offset = number("offset") ?? 0
        let matrix = Self.read("\(folder)/\(prefix)_mount_matrix") ?? Self.read("\(folder)/in_mount_matrix")
        let parts = (matrix ?? "").split { ",; \t\n".contains($0) }.compactMap { Float($0) }
        if parts.count == 9, parts.allSatisfy(\.isFinite) { sensor.mount = parts }
        return sensor
    }

    private static let rateNames = [
        "in_anglvel_sampling_frequency", "in_accel_sampling_frequency", "in_rot_sampling_frequency",
        "sampling_frequency",
    ]

    private func setRate(_ wanted: Double) throws(IIOFault) {
        let there = Self.rateNames.filter { access("\(folder)/\($0)", F_OK) == 0 }
        let text = wanted == wanted.rounded() ? String(Int(wanted)) : String(wanted)
        var fault: (code: Int32, name: String)?
        for name in there {
            if let code = write(name, text) { fault = (code, name) }
        }
        if let fault {
            guard ![EACCES, EPERM, EBUSY, ENODEV].contains(fault.code) else { throw unset(fault.code, fault.name) }
            let available = Self.read("\(folder)/sampling_frequency_available").map { " (\($0))" } ?? ""
            throw IIOFault(
                what: "'\(self.name)' does not take the rate \(text) Hz: \(fault.name): \(ErrorText.of(fault.code))",
                remedy: "Use a 'rate' that the device has\(available), or leave 'rate' out.")
        }
    }

    private func readRate() -> Double {
        let found = Self.rateNames.compactMap { Self.read("\(folder)/\($0)").flatMap { Double($0) } }
        guard let rate = found.first, rate.isFinite, 0.001...MotionFormat.highestRate ~= rate else { return 0 }
        return rate
    }

    /// A device that is not triggered yet gets a trigger of its own driver.
    private func chooseTrigger() {
        guard let present = Self.read("\(folder)/trigger/current_trigger"), present.isEmpty else { return }
        let parent = folder.split(separator: "/").dropLast().joined(separator: "/")
        for entry in Self.entries(of: "/" + parent) where entry.hasPrefix("trigger") {
            guard let trigger = Self.read("/\(parent)/\(entry)/name"), trigger.hasPrefix("\(name)-dev") else {
                continue
            }
            _ = write("trigger/current_trigger", trigger)
            return
        }
    }

    /// Writes an attribute; returns an errno where that fails.
    private func write(_ attribute: String, _ text: String) -> Int32? {
        let file = Glibc.open("\(folder)/\(attribute)", O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { return errno }
        defer { Glibc.close(file) }
        let bytes = Array(text.utf8)
        return Glibc.write(file, bytes, bytes.count) < 0 ? errno : nil
    }

    /// An attribute without its line end; nil where there is none.
    private static func read(_ path: String) -> String? {
        let file = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { Glibc.close(file) }
        var bytes = [UInt8](repeating: 0, count: mostAttributeBytes)
        let count = Glibc.read(file, &bytes, bytes.count)
        guard count >= 0 else { return nil }
        var text = String(decoding: bytes[..<count], as: UTF8.self)[...]
        // Some attributes end with a zero byte.
        while let last = text.last, last.isWhitespace || last == "\0" { text.removeLast() }
        return String(text)
    }

    private static func entries(of folder: String) -> [String] {
        guard let open = opendir(folder) else { return [] }
        defer { closedir(open) }
        var names: [String] = []
        while let entry = readdir(open) {
            names.append(
                withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                    pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                })
        }
        return names
    }
}
