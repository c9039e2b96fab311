//! The zygote: an initialised engine that forks workers.
//!
//! It has one thread, an empty environment and no secrets; it never sees guest code. With the JIT off it also makes the
//! world that each of its forks begins with. It ends when the host does, and
//! its workers end with it. One that becomes a [template](Template) has no more and is confined.

use std::collections::{HashMap, VecDeque};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use pydeno_engine::{Engine, Features, Isolate, IsolateError, IsolateOptions, Tier, WebAssembly};
use pydeno_sandbox::Layer;
use pydeno_wire::message::BUILD;
use pydeno_wire::message::{ExitStatus, SandboxMode, ZygoteReply, ZygoteRequest};
use pydeno_wire::{Budget, Message};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getpid, getppid, getrlimit, pidfd_open,
    pidfd_send_signal, set_parent_process_death_signal, setrlimit, waitid,
};

use crate::engine_descriptors::EngineDescriptors;
use crate::process::{Side, ThreadCount, fork};
use crate::start::{self, Order, Origin};
use crate::template::Template;

/// Ends of workers that nobody has asked about yet; older ones are forgotten.
const REMEMBERED_ENDS: usize = 4096;
/// How long the proof that the filter kills may take; it needs milliseconds.
const PROOF_PATIENCE: Duration = Duration::from_secs(1);
/// How long a template waits for the workers that the host has ended. It cannot end them itself; those that are left the
/// kernel ends with it.
const FAREWELL: Duration = Duration::from_millis(500);
/// The largest request is a few words.
const MAX_MESSAGE: usize = 4096;
/// The control socket's name in the epoll set; process ids are positive.
const CONTROL: u64 = 0;

/// Loads the engine and serves the host at the other end of standard input until it hangs up.
pub(crate) fn run(tier: &str, webassembly: WebAssembly) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let stdin = io::stdin();
    let control = stdin.as_fd();
    let tier =
        Tier::from_name(tier).ok_or_else(|| io::Error::other(format!("no JIT tier is named {tier:?}")))?;
    let engine = match Engine::load() {
        Ok(engine) => engine,
        Err(error) => {
            return reply(control, &ZygoteReply::EngineUnavailable { reason: error.to_string() }, None);
        }
    };
    if let Err(error) = engine.initialise(Features { tier, webassembly: webassembly != WebAssembly::None }) {
        return reply(control, &ZygoteReply::EngineUnavailable { reason: error.to_string() }, None);
    }
    let descriptors = EngineDescriptors::find()?;
    raise_open_files();
    let world = match world_of_forks(engine, tier, webassembly) {
        Ok(world) => world,
        Err(error) => {
            return reply(control, &ZygoteReply::EngineUnavailable { reason: error.to_string() }, None);
        }
    };
    let library = engine.library().to_owned();
    reply(control, &ZygoteReply::Listening { build: BUILD.to_owned(), engine: library }, None)?;
    let mut zygote = Zygote::new(engine, webassembly, world, descriptors, control)?;
    let served = zygote.serve();
    zygote.end_workers();
    served
}

/// A world in which nothing of a guest has run, for each fork to begin with: making one takes as long as the rest of a
/// worker's start. A compiler's threads would be lost in a fork, so in other tiers each worker makes its own.
fn world_of_forks(
    engine: &'static Engine,
    tier: Tier,
    webassembly: WebAssembly,
) -> Result<Option<Isolate>, IsolateError> {
    let options = IsolateOptions { webassembly, for_forks: true, ..IsolateOptions::default() };
    if tier != Tier::Off {
        return Ok(None);
    }
    let world = Isolate::new(engine, &options)?;
    world.warm_up();
    Ok(Some(world))
}

struct Zygote<'a> {
    engine: &'static Engine,
    webassembly: WebAssembly,
    /// What forks begin with, in the tier that allows it.
    world: Option<Isolate>,
    descriptors: EngineDescriptors,
    control: BorrowedFd<'a>,
    epoll: OwnedFd,
    threads: ThreadCount,
    /// Whether a confined child that does what no worker ever does is killed for it; found out once.
    kill_proof: Option<Layer>,
    live: HashMap<Pid, OwnedFd>,
    ended: VecDeque<(Pid, ExitStatus)>,
    /// Workers whose end the host waits to hear of. Replies keep the order of requests, so only the first of them
    /// can be answered, and nothing else is read meanwhile.
    awaited: Option<Pid>,
    /// What forks begin with, once this process is a template.
    template: Option<Template>,
}

impl<'a> Zygote<'a> {
    fn new(
        engine: &'static Engine,
        webassembly: WebAssembly,
        world: Option<Isolate>,
        descriptors: EngineDescriptors,
        control: BorrowedFd<'a>,
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, control, epoll::EventData::new_u64(CONTROL), epoll::EventFlags::IN)?;
        Ok(Self {
            engine,
            webassembly,
            world,
            descriptors,
            control,
            epoll,
            threads: ThreadCount::new()?,
            kill_proof: None,
            live: HashMap::new(),
            ended: VecDeque::new(),
            awaited: None,
            template: None,
        })
    }

    fn serve(&mut self) -> io::Result<()> {
        loop {
            let mut events = [MaybeUninit::uninit(); 64];
            let (ready, _) = match epoll::wait(&self.epoll, &mut events, None) {
                Err(Errno::INTR) => continue,
                other => other?,
            };
            let ready: Vec<u64> = ready.iter().map(|event| event.data.u64()).collect();
            for name in ready {
                match i32::try_from(name).ok().and_then(Pid::from_raw) {
                    Some(pid) => self.reap(pid)?,
                    None if self.awaited.is_none() && !self.request()? => return Ok(()),
                    None => {}
                }
            }
        }
    }

    /// Serves one request; false when the host has hung up.
    fn request(&mut self) -> io::Result<bool> {
        let Some((request, [socket, group])) = receive(self.control)? else { return Ok(false) };
        match (request, socket) {
            (ZygoteRequest::Spawn { sandbox, empty_root, web }, Some(socket)) => {
                self.spawn(socket, group, sandbox, empty_root, web)?;
            }
            (ZygoteRequest::BecomeTemplate { sandbox, empty_root }, Some(socket)) => {
                return self.become_template(socket, sandbox, empty_root);
            }
            (ZygoteRequest::Spawn { .. } | ZygoteRequest::BecomeTemplate { .. }, None) => {
                self.refuse("no socket came with the request")?;
            }
            (ZygoteRequest::Collect { pid }, _) => self.collect(pid)?,
        }
        Ok(true)
    }

    fn refuse(&self, reason: &str) -> io::Result<()> {
        reply(self.control, &ZygoteReply::SpawnFailed { reason: reason.to_owned() }, None)
    }

    /// Nobody is left to work for, and the workers are this process's to reap. One that has ended already is an error to
    /// signal and none to wait for.
    fn end_workers(&self) {
        if self.template.is_some() {
            return self.see_workers_off();
        }
        for pidfd in self.live.values() {
            let _ = pidfd_send_signal(pidfd, Signal::KILL);
        }
        for pidfd in self.live.values() {
            let _ = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
        }
    }

    fn see_workers_off(&self) {
        let until = Instant::now() + FAREWELL;
        for pidfd in self.live.values() {
            let left = until.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).expect("less than a second fits a timespec");
            // One that is still there when the time is over is left to the kernel, and to whoever reaps orphans.
            let _ = poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&timeout));
            let _ = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
    }

    /// Finds out, once, whether a confined child that does what no worker ever does is killed for it.
    fn prove(&mut self, sandbox: SandboxMode) {
        if sandbox != SandboxMode::Off && self.kill_proof.is_none() {
            self.kill_proof = Some(pydeno_sandbox::kill_is_enforced(PROOF_PATIENCE));
        }
    }

    fn kill_proof(&self, sandbox: SandboxMode) -> Option<&Layer> {
        match sandbox {
            SandboxMode::Off => None,
            SandboxMode::Require | SandboxMode::Auto => self.kill_proof.as_ref(),
        }
    }

    /// False when this process may not go on.
    fn become_template(
        &mut self,
        socket: OwnedFd,
        sandbox: SandboxMode,
        empty_root: bool,
    ) -> io::Result<bool> {
        if self.template.is_some() || !self.live.is_empty() || !self.ended.is_empty() {
            self.refuse("this zygote has forked workers")?;
            return Ok(true);
        }
        let parent = getppid().ok_or_else(|| io::Error::other("the host is in another process namespace"))?;
        self.prove(sandbox);
        let world = self.world.take();
        let order = Order {
            parent,
            sandbox,
            empty_root,
            web: false,
            webassembly: self.webassembly,
            kill_proof: self.kill_proof(sandbox),
        };
        let keep = [self.control, self.epoll.as_fd(), self.threads.descriptor()];
        self.template = Template::make(self.engine, &self.descriptors, &keep, socket, &order, world)?;
        if self.template.is_none() {
            return Ok(false);
        }
        if let Err(error) = self.threads.check_that_it_is_one() {
            self.refuse(&format!("forks would lose a thread that the engine has started: {error}"))?;
            return Ok(false);
        }
        reply(self.control, &ZygoteReply::TemplateReady, None)?;
        Ok(true)
    }

    fn spawn(
        &mut self,
        socket: OwnedFd,
        group: Option<OwnedFd>,
        sandbox: SandboxMode,
        empty_root: bool,
        web: bool,
    ) -> io::Result<()> {
        let parent = getpid();
        match &self.template {
            None => self.prove(sandbox),
            Some(template) if template.is_of(sandbox, empty_root) && !web => {}
            Some(_) => return self.refuse("the template's sandbox, or what its guests find, is another one"),
        }
        let child = match fork(&self.threads) {
            Ok(Side::Child) => {
                if let Some(group) = group {
                    // Whether this worked is for the host to see, who asks the kernel.
                    let _ = rustix::io::write(&group, b"0");
                }
                let origin = match (self.template.take(), self.world.take()) {
                    (Some(template), _) => Origin::Template(template),
                    (None, Some(world)) => Origin::World(world),
                    (None, None) => Origin::Nothing,
                };
                let Self { engine, webassembly, kill_proof, .. } = self;
                let kill_proof = kill_proof.as_ref().filter(|_| sandbox != SandboxMode::Off);
                let webassembly = *webassembly;
                let order = Order { parent, sandbox, empty_root, web, webassembly, kill_proof };
                start::run(engine, &mut self.descriptors, socket, &order, origin)
            }
            Ok(Side::Parent { child }) => child,
            Err(error) => return self.refuse(&format!("fork: {error}")),
        };
        drop((socket, group));
        // Only this process can reap the child, so the number is still its own.
        let pidfd = pidfd_open(child, PidfdFlags::empty())?;
        let pidfd = self.live.entry(child).or_insert(pidfd);
        let name = epoll::EventData::new_u64(child.as_raw_pid() as u64);
        epoll::add(&self.epoll, &*pidfd, name, epoll::EventFlags::IN)?;
        reply(self.control, &ZygoteReply::Spawned { pid: child.as_raw_pid() }, Some(pidfd.as_fd()))
    }

    fn collect(&mut self, pid: i32) -> io::Result<()> {
        let known = Pid::from_raw(pid);
        if let Some(live) = known.filter(|pid| self.live.contains_key(pid)) {
            self.awaited = Some(live);
            return Ok(());
        }
        let status = self
            .ended
            .iter()
            .find_map(|(ended, status)| (Some(*ended) == known).then_some(*status))
            .unwrap_or(ExitStatus::Unknown);
        reply(self.control, &ZygoteReply::Exited { pid, status }, None)
    }

    fn reap(&mut self, pid: Pid) -> io::Result<()> {
        let Some(pidfd) = self.live.remove(&pid) else { return Ok(()) };
        let ended = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED)?;
        // Closing the last descriptor of a pidfd takes it out of the epoll set, but the host holds another one.
        epoll::delete(&self.epoll, &pidfd)?;
        let status = match ended {
            Some(status) if status.exited() => ExitStatus::Code(status.exit_status().unwrap_or(-1)),
            Some(status) => ExitStatus::Signal(status.terminating_signal().unwrap_or(0)),
            None => ExitStatus::Unknown,
        };
        if self.awaited == Some(pid) {
            self.awaited = None;
            let reply_pid = pid.as_raw_pid();
            reply(self.control, &ZygoteReply::Exited { pid: reply_pid, status }, None)?;
        }
        if self.ended.len() == REMEMBERED_ENDS {
            self.ended.pop_front();
        }
        self.ended.push_back((pid, status));
        Ok(())
    }
}

/// Each live worker costs the zygote a descriptor; the usual soft limit of 1024 is no wish of anybody's.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // Without it the zygote only serves fewer workers.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// A request and the descriptors that came with it: a worker's socket, and where it enters its group.
fn receive(control: BorrowedFd<'_>) -> io::Result<Option<(ZygoteRequest, [Option<OwnedFd>; 2])>> {
    let mut bytes = [0; MAX_MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match recvmsg(control, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            other => break other?,
        }
    };
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut fds = ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten();
    let fds = [fds.next(), fds.next()];
    let request =
        ZygoteRequest::decode(&bytes[..received.bytes], &Budget::default()).map_err(io::Error::other)?;
    Ok(Some((request, fds)))
}

fn reply(control: BorrowedFd<'_>, reply: &ZygoteReply, fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(64);
    reply.encode(&mut bytes, &Budget::default()).map_err(io::Error::other)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fds = fd.map(|fd| [fd]);
    if let Some(fds) = &fds {
        ancillary.push(SendAncillaryMessage::ScmRights(fds));
    }
    sendmsg(control, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}
