// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameHTTP
import ServerAccess

/// Everything that the server answers, without a socket: from a request's head and body to an answer.
struct ControlAPI: Sendable {
    /// The most bytes of a body.
    static let mostBodyBytes = 1 << 20

    let control: any RunControl
    let gate: Gate
    let pictures: PictureRequests
    let units: UnitFanOut
    let events: EventRing
    let rates: RateWatch
    let viewers = Locked(ViewerCount())
    /// What is on its way to clients.
    var memory: AnswerMemory { pictures.memory }

    /// A viewer's place. It is free again when the viewer leaves it, or when this object is freed.
    final class Place: Sendable {
        private let onLeave: Locked<(@Sendable () -> Void)?>

        init(_ onLeave: @escaping @Sendable () -> Void) { self.onLeave = Locked(onLeave) }
        deinit { leave() }

        func leave() {
            let action = onLeave.withLock { action in
                defer { action = nil }
                return action
            }
            action?()
        }
    }

    /// A place; nil where `most` viewers watch already.
    func place(_ kind: WritableKeyPath<ViewerCount, Int> & Sendable, most: Int) -> Place? {
        let isFree = viewers.withLock { viewers in
            guard viewers[keyPath: kind] < most else { return false }
            viewers[keyPath: kind] += 1
            return true
        }
        return isFree ? Place { [viewers] in viewers.withLock { $0[keyPath: kind] -= 1 } } : nil
    }

    /// How many clients watch at the moment. More than the limits are refused.
    struct ViewerCount: Sendable {
        var events = 0
        /// Viewers of MJPEG.
        var pictures = 0
        /// WebSockets, and the previews that they have open.
        var sockets = 0
        var previews = 0
    }

    /// - Parameters:
    ///   - verdict: Of ``judge(_:from:)`` for this request, which counts wrong logins and so is asked once.
    ///   - readBody: Reads the whole body. Called at most once, and only for routes with a body.
    func answer(
        _ head: RequestHead, _ verdict: Result<Caller, Refusal>, from address: PeerAddress = .local,
        readBody: (_ most: Int) async throws -> [UInt8] = { _ in [] }
    ) async -> Answer {
        do {
            let caller = try verdict.get()
            if let file = try page(head) { return file }
            guard let target = Target(head.target) else {
                throw Refusal(
                    400, "invalid-configuration", place: "path",
                    "the address must be a path in UTF-8 of at most 8192 bytes, without control characters",
                    "Percent-encode names as RFC 3986 defines.")
            }
            let (route, values) = try find(head.method, target.path)
            if let missing = Rights.words.first(where: { route.rights.subtracting(caller.rights).contains($0.right) }) {
                throw gate.desk.lacks(missing.right, caller, place: values["id"] ?? "path", "this address")
            }
            var call = Call(path: values, head: head, caller: caller, address: address)
            call.query = try QueryValues(target.query, route.query)
            call.body = try await body(route, head, readBody)
            return try await route.handle(call)
        } catch let refusal as Refusal {
            return .refused(refusal)
        } catch let errors as FrameHostErrors {
            return .faults(errors.errors)
        } catch {
            return .faults([FrameHostError.wrap(error)])
        }
    }

    private func find(_ method: String, _ path: [String]) throws -> (Route, [String: String]) {
        switch Router(routes: routes).match(method, path) {
        case .found(let route, let values): return (route, values)
        case .otherMethod(let allowed):
            var refusal = Refusal(
                405, "method-not-allowed", place: "method", "this address does not support \(method.prefix(16))",
                "Use \(QueryParameter.alternatives(allowed)).")
            refusal.fields = ["Allow": allowed.joined(separator: ", ")]
            throw refusal
        case .none:
            throw Refusal(
                404, "not-found", place: "path", "there is nothing at this address",
                "Correct the path: /openapi.json lists all addresses."
            )
        }
    }

    private func body(_ route: Route, _ head: RequestHead, _ read: (Int) async throws -> [UInt8]) async throws
        -> JSONNode?
    {
        let schema: JSONNode
        var isRequired = false
        switch route.body {
        case .none:
            guard !head.hasBody else {
                throw Refusal(
                    400, "invalid-configuration", place: "body", "this request takes no body", "Leave it out.")
            }
            return nil
        case .optional(let rule): schema = rule
        case .required(let rule): (schema, isRequired) = (rule, true)
        }
        if let length = head["content-length"], Int(length).map({ $0 > Self.mostBodyBytes }) ?? true {
            throw Self.tooLarge
        }
        let bytes: [UInt8]
        do {
            bytes = head.hasBody ? try await read(Self.mostBodyBytes) : []
        } catch let refusal as Refusal {
            throw refusal
        } catch {
            throw Refusal(
                400, "invalid-configuration", place: "body", "the body must be sent as HTTP/1.1 defines",
                "Send it with Content-Length or in chunks.")
        }
        guard !bytes.isEmpty else {
            guard !isRequired else {
                throw Refusal(
                    400, "invalid-configuration", place: "body", "this request needs a body",
                    "Send JSON, with the field Content-Type: application/json.")
            }
            return nil
        }
        let node = try JSONReader.read(bytes, file: "body")
        if schema["type"]?.asString == "object", node.asObject == nil {
            throw Refusal(
                400, "invalid-configuration", place: "body", "the body must be an object, but is \(node.kindName)",
                "Send { … }.")
        }
        return node
    }

    static var tooLarge: Refusal {
        Refusal(
            413, "too-large", place: "body", "the body must have at most \(mostBodyBytes) bytes",
            "Send a smaller body.")
    }

    // MARK: Commands

    /// How long to wait for the answer of a stage, and of a change of the chain, seconds.
    static let (stagePatience, changePatience) = (10.0, 60.0)

    /// Carries out a command and waits for its answer.
    ///
    /// - Parameters:
    ///   - caller: Who sends it.
    ///   - subject: The stage that the path names.
    func perform(
        _ command: JSONNode, by caller: Caller, subject: String? = nil, within seconds: Double
    ) async throws -> Answer {
        let place = subject ?? "chain"
        guard caller.rights.contains(.control) else {
            throw gate.desk.lacks(.control, caller, place: place, "a command")
        }
        if !caller.rights.contains(.originals), control.needsOriginals(command) {
            throw gate.desk.lacks(
                .originals, caller, place: place,
                "this command shows or records what a stage with privacy covers, or changes what it covers, so that it")
        }
        guard let answer = await answer(to: command, within: seconds) else {
            throw Refusal(
                504, "timeout", place: subject ?? "chain", "no answer came within \(Int(seconds)) s",
                "Look at /api/v1/status before you send the command again: it may still be carried out.")
        }
        guard answer.isDone else { return .faults(answer.faults, subject: subject) }
        return .json(
            .object(
                [("frame", .number(answer.frame)), ("text", .string(answer.text))]
                    + answer.details.filter { $0.key != "frame" && $0.key != "text" }.map { ($0.key, $0.value) }))
    }

    private func answer(to command: JSONNode, within seconds: Double) async -> CommandAnswer? {
        let once = Once<CommandAnswer?>()
        // Not `Task.sleep`, whose timers need a thread of Swift's pool.
        let timer = ServerThreads.shared.loop.scheduleTask(in: .nanoseconds(Int64(seconds * 1e9))) { once.give(nil) }
        defer { timer.cancel() }
        return await withCheckedContinuation { continuation in
            once.wait(continuation)
            control.perform(command) { once.give($0) }
        }
    }
}

/// A value that is given once, by the first of several threads.
final class Once<Value: Sendable>: Sendable {
    private struct State {
        var continuation: CheckedContinuation<Value, Never>?
        var isGiven = false
    }
    private let state = Locked(State())

    /// Must be called before a value can be given.
    func wait(_ continuation: CheckedContinuation<Value, Never>) {
        state.withLock { $0.continuation = continuation }
    }

    /// The first value counts.
    func give(_ value: Value) {
        let waiting = state.withLock { state -> CheckedContinuation<Value, Never>? in
            guard !state.isGiven, let waiting = state.continuation else { return nil }
            state.isGiven = true
            state.continuation = nil
            return waiting
        }
        waiting?.resume(returning: value)
    }
}
