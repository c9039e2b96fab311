//! The zygote: an initialised engine that forks workers.
//!
//! It has one thread, an empty environment and no secrets; it never sees guest code. It ends when the host does, and
//! its workers end with it.

use std::collections::{HashMap, VecDeque};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use pydeno_engine::{Engine, Features, Surface, Tier};
use pydeno_sandbox::Layer;
use pydeno_wire::message::BUILD;
use pydeno_wire::message::{ExitStatus, SandboxMode, ZygoteReply, ZygoteRequest};
use pydeno_wire::{Budget, Message};
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getpid, getrlimit, pidfd_open,
    pidfd_send_signal, set_parent_process_death_signal, setrlimit, waitid,
};

use crate::engine_descriptors::EngineDescriptors;
use crate::process::{Side, fork};
use crate::worker::{self, Order};

/// Ends of workers that nobody has asked about yet; older ones are forgotten.
const REMEMBERED_ENDS: usize = 4096;
/// How long the proof that the filter kills may take; it needs milliseconds.
const PROOF_PATIENCE: Duration = Duration::from_secs(1);
/// The largest request is a few words.
const MAX_MESSAGE: usize = 4096;
/// The control socket's name in the epoll set; process ids are positive.
const CONTROL: u64 = 0;

/// Loads the engine and serves the host at the other end of standard input until it hangs up.
pub(crate) fn run(tier: &str, webassembly: bool) -> io::Result<()> {
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
    if let Err(error) = engine.initialise(Features { tier, webassembly }) {
        return reply(control, &ZygoteReply::EngineUnavailable { reason: error.to_string() }, None);
    }
    let descriptors = EngineDescriptors::find()?;
    raise_open_files();
    let library = engine.library().to_owned();
    reply(control, &ZygoteReply::Listening { build: BUILD.to_owned(), engine: library }, None)?;
    let surface = if webassembly { Surface::GuestWithWebAssembly } else { Surface::Guest };
    let mut zygote = Zygote::new(engine, surface, descriptors, control)?;
    let served = zygote.serve();
    zygote.end_workers();
    served
}

struct Zygote<'a> {
    engine: &'static Engine,
    surface: Surface,
    descriptors: EngineDescriptors,
    control: BorrowedFd<'a>,
    epoll: OwnedFd,
    /// Whether a confined child that does what no worker ever does is killed for it; found out once.
    kill_proof: Option<Layer>,
    live: HashMap<Pid, OwnedFd>,
    ended: VecDeque<(Pid, ExitStatus)>,
    /// Workers whose end the host waits to hear of. Replies keep the order of requests, so only the first of them
    /// can be answered, and nothing else is read meanwhile.
    awaited: Option<Pid>,
}

impl<'a> Zygote<'a> {
    fn new(
        engine: &'static Engine,
        surface: Surface,
        descriptors: EngineDescriptors,
        control: BorrowedFd<'a>,
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, control, epoll::EventData::new_u64(CONTROL), epoll::EventFlags::IN)?;
        Ok(Self {
            engine,
            surface,
            descriptors,
            control,
            epoll,
            kill_proof: None,
            live: HashMap::new(),
            ended: VecDeque::new(),
            awaited: None,
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
            (ZygoteRequest::Spawn { sandbox, empty_root }, Some(socket)) => {
                self.spawn(socket, group, sandbox, empty_root)?;
            }
            (ZygoteRequest::Spawn { .. }, None) => {
                let reason = "no socket came with the request".to_owned();
                reply(self.control, &ZygoteReply::SpawnFailed { reason }, None)?;
            }
            (ZygoteRequest::Collect { pid }, _) => self.collect(pid)?,
        }
        Ok(true)
    }

    /// Nobody is left to work for, and the workers are this process's to reap. One that has ended already is an error to
    /// signal and none to wait for.
    fn end_workers(&self) {
        for pidfd in self.live.values() {
            let _ = pidfd_send_signal(pidfd, Signal::KILL);
        }
        for pidfd in self.live.values() {
            let _ = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
        }
    }

    fn spawn(
        &mut self,
        socket: OwnedFd,
        group: Option<OwnedFd>,
        sandbox: SandboxMode,
        empty_root: bool,
    ) -> io::Result<()> {
        let parent = getpid();
        let kill_proof = match sandbox {
            SandboxMode::Off => None,
            SandboxMode::Require | SandboxMode::Auto => Some(
                &*self.kill_proof.get_or_insert_with(|| pydeno_sandbox::kill_is_enforced(PROOF_PATIENCE)),
            ),
        };
        let child = match fork() {
            Ok(Side::Child) => {
                if let Some(group) = group {
                    // Whether this worked is for the host to see, who asks the kernel.
                    let _ = rustix::io::write(&group, b"0");
                }
                let surface = self.surface;
                let order = Order { parent, sandbox, empty_root, surface, kill_proof };
                worker::run(self.engine, &mut self.descriptors, socket, &order)
            }
            Ok(Side::Parent { child }) => child,
            Err(error) => {
                let reason = format!("fork: {error}");
                return reply(self.control, &ZygoteReply::SpawnFailed { reason }, None);
            }
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
