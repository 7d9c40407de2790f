package check

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/logengine/internal/disk"
	"github.com/tarryhq/tarry/engine/logengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/logengine/internal/marks"
	"github.com/tarryhq/tarry/engine/logengine/internal/recent"
	"github.com/tarryhq/tarry/engine/logengine/internal/record"
	"github.com/tarryhq/tarry/engine/logengine/internal/run"
	"github.com/tarryhq/tarry/engine/logengine/internal/wal"
)

// Rescued tells of a store that was made of what could be read of a damaged one.
type Rescued struct {
	Losses []Loss
	Notes  []string // what else became of it
	Aside  string   // the directory where the files are as they were; empty: the store was sound
	After  *Report  // of the store as it is now
}

// Losses says what a Rescue of a store would give up. It changes nothing. A store that is sound loses
// nothing.
func Losses(f disk.FS, dir string, cfg *Config) (all []Loss, err error) {
	err = locked(f, dir, func() error {
		r, err := newRescue(f, dir, cfg)
		if r != nil {
			all, err = r.losses, errors.Join(err, r.close())
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look at a damaged store: %w", err)
	}
	return all, nil
}

// Rescue makes a sound store of what can be read of a damaged one, in its place. First it calls tell
// with what is given up; an error of that ends it with nothing changed. Then the files get a second
// name in a directory beside them, Rescued.Aside, what is damaged is written anew from what can be read
// of it, and one rename of the manifest puts that in force: until then the store is what it was.
//
// Messages that can be read are kept, one by one. What had been acked, cancelled or purged by something
// that is lost comes back.
func Rescue(f disk.FS, dir string, cfg *Config, tell func([]Loss) error) (out Rescued, err error) {
	err = locked(f, dir, func() error {
		r, err := newRescue(f, dir, cfg)
		if err != nil {
			return err
		}
		if r != nil {
			if err = tell(r.losses); err == nil {
				err = r.mend()
			}
			out.Losses, out.Notes, out.Aside = r.losses, r.notes, r.aside
			if err = errors.Join(err, r.close()); err != nil {
				return err
			}
		}
		again := newChecker(f, dir, cfg)
		out.After = again.rep
		return again.all()
	})
	if err != nil {
		return out, fmt.Errorf("repair a store: %w", err)
	}
	return out, nil
}

// rescue makes a store of another one.
type rescue struct {
	*checker
	cfg     Config
	disk    *surface
	raw     *surface // where files have the names they have
	found   *Report
	has     inventory
	rebuilt bool // there is no manifest to go by
	names   map[uint32]string
	broken  bool // something of the log is missing
	losses  []Loss
	notes   []string

	parts []*part
	next  manifest.State
	aside string
}

// part is a run of the store.
type part struct {
	number   uint64 // it had in the damaged one
	is       manifest.Run
	run      *run.Run      // that counts; nil: not yet, or none
	salvaged *run.Salvaged // nil: it is sound, or lost
	lost     bool
}

func (p *part) keys() bool { return recent.Area(p.is.Area) == recent.Finished }

// newRescue looks at a store; nil: it is sound.
func newRescue(f disk.FS, dir string, cfg *Config) (*rescue, error) {
	c := newChecker(f, dir, cfg)
	if err := c.all(); err != nil {
		return nil, err
	}
	if c.rep.Sound() {
		return nil, nil
	}
	r := &rescue{disk: &surface{FS: f, zeros: true, also: map[string]string{}}, raw: &surface{FS: f, zeros: true}, found: c.rep, names: map[uint32]string{}}
	if cfg != nil {
		r.cfg = *cfg
	}
	r.checker = newChecker(r.disk, dir, cfg)
	r.checker.fs = r.disk
	if err := r.plan(); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *rescue) close() (err error) {
	for _, p := range r.parts {
		if p.run != nil {
			err = errors.Join(err, p.run.Close())
		}
		if p.salvaged != nil {
			err = errors.Join(err, p.salvaged.Close())
		}
	}
	return err
}

func (r *rescue) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// plan finds out what can be read, and what cannot.
func (r *rescue) plan() error {
	if err := r.look(); err != nil {
		return err
	}
	if err := r.manifest(); err != nil {
		return err
	}
	if err := r.planLog(); err != nil {
		return err
	}
	if t := r.found.Torn; t != nil && !r.broken {
		r.note("the log was not closed, as after a crash: it ends at %s, offset %d; whether something is missing there cannot be told", t.File, t.Offset)
	}
	for _, p := range r.parts {
		if err := r.part(p); err != nil {
			return err
		}
	}
	return nil
}

// manifest reads what the store consists of, or takes all that is there.
func (r *rescue) manifest() (err error) {
	err = fs.ErrNotExist
	for _, name := range r.has.manifests {
		r.disk.also[r.path(manifest.Name)] = name
		r.state, err = manifest.Read(r.fs, r.dir)
		var damage *disk.DamageError
		if err == nil || !errors.As(err, &damage) {
			break
		}
		err = fs.ErrNotExist
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if r.rebuilt = err != nil; r.rebuilt {
		if err := r.rebuild(); err != nil {
			return err
		}
	}
	r.secret = r.state.Secret
	r.file = max(r.state.NextFile, r.has.highest+1)
	for number, name := range r.has.runs {
		r.disk.also[run.Name(r.path(runsName), number)] = name
	}
	for number, name := range r.has.marks {
		r.disk.also[marks.Name(r.path(runsName), number)] = name
	}
	for _, is := range r.state.Runs {
		r.parts = append(r.parts, &part{number: is.Number, is: is})
	}
	return nil
}

// most is what stands in a manifest that is not known for numbers that have not been used yet.
const most = 1<<63 - 1

// rebuild makes a state of the files that there are.
func (r *rescue) rebuild() error {
	r.state = manifest.State{Replay: uint64(wal.Unknown), NextID: most, NextQueue: 1<<32 - 1, NextFile: most}
	l := Loss{File: r.path(manifest.Name), Offset: -1, What: "which runs count, who has died in them, and from where on the log counts is taken from the files that there are", Again: true}
	if len(r.has.stores) > 0 {
		slices.Sort(r.has.stores)
		r.state.Store = r.has.stores[len(r.has.stores)/2] // of two stores' files, that of which there are more
	} else {
		var ok bool
		for _, name := range r.has.segments {
			var err error
			if r.state.Store, ok, err = wal.StoreOf(r.raw, name); err != nil {
				return err
			}
			if ok {
				break
			}
		}
		if !ok {
			return &disk.DamageError{What: manifest.ErrDamaged, File: r.path(manifest.Name), Reason: "neither it nor any run or segment of the log can be read: nothing of this store can be told from what is no part of it"}
		}
	}
	if _, err := rand.Read(r.state.Secret[:]); err != nil {
		return err
	}
	logs := map[uint64]bool{}
	for _, name := range r.has.segments {
		if number, isLog := manifest.ParseLogName(filepath.Base(filepath.Dir(name))); isLog {
			logs[number] = true
			r.state.Log = max(r.state.Log, number)
		}
	}
	for number := range r.has.runs {
		r.state.Runs = append(r.state.Runs, manifest.Run{Number: number})
	}
	slices.SortFunc(r.state.Runs, func(a, b manifest.Run) int { return int(int64(a.Number) - int64(b.Number)) })
	r.losses = append(r.losses, l)
	return nil
}

// planLog looks what is missing of the log, and reads the names of queues.
func (r *rescue) planLog() error {
	err := r.log(&nameReader{names: r.names}, func(g wal.Gap) error {
		r.broken = true
		l := Loss{File: g.File, Offset: g.Offset, Messages: -1, Again: true, What: fmt.Sprintf("%d bytes of the log are missing from here on", g.To-g.From)}
		if g.To == wal.Unknown {
			l.What = "the log from here on is missing"
		}
		if g.File == "" {
			l.File, l.Offset = r.logDir(), -1
			l.What = fmt.Sprintf("%d bytes of the log are missing, from position %d on", g.To-g.From, g.From)
		}
		r.losses = append(r.losses, l)
		return nil
	})
	if err != nil {
		return err
	}
	for _, f := range r.found.Findings {
		if at := r.found.log; r.broken || at == "" || f.File != at && !strings.HasPrefix(f.File, at+string(filepath.Separator)) {
			continue
		}
		r.broken = true
		r.losses = append(r.losses, Loss{File: f.File, Offset: f.Offset, What: f.What, Messages: -1, Again: true})
	}
	return nil
}

// log gives what can be read of the log to an applier.
func (r *rescue) log(to record.Applier, gap func(wal.Gap) error) error {
	return wal.Salvage(r.raw, r.logSegments(), &wal.Config{ID: r.state.Store, MaxEntry: mostEntry}, wal.Pos(r.state.Replay), func(e wal.Entry) error {
		if err := record.Each(e.Kind, e.Bytes, to); errors.Is(err, record.ErrNewer) {
			return err
		} else if m, ok := to.(*restored); ok && m.err != nil {
			return m.err
		}
		return r.pace(len(e.Bytes)) // a record that is none is passed over
	}, gap)
}

// part opens a run, sound or not, with who has died in it.
func (r *rescue) part(p *part) error {
	if err := r.open(p); err != nil || p.lost {
		return err
	}
	of := p.run
	if p.salvaged != nil {
		of = p.salvaged.Run
	}
	if err := r.deaths(p, of); err != nil || p.salvaged == nil {
		return err
	}
	return r.holes(p)
}

func (r *rescue) open(p *part) error {
	dir, cfg := r.path(runsName), &run.Config{ID: r.state.Store, Pace: r.pace}
	name := run.Name(dir, p.number)
	at, there := r.has.runs[p.number]
	if !there {
		p.lost = true
		r.lostRun(p, "the run is missing")
		return nil
	}
	var damage *disk.DamageError
	if at == name && !r.rebuilt && p.is.Area <= uint8(recent.Finished) {
		sound, err := run.Open(r.fs, dir, p.number, cfg)
		if err == nil {
			if err = sound.VerifyValues(r.pace, func(e run.Entry) (run.Key, error) { return r.keyOf(recent.Area(p.is.Area), e) }); err == nil {
				p.run = sound
				return nil
			}
			err = errors.Join(err, sound.Close())
		}
		if !errors.As(err, &damage) {
			return err
		}
	}
	s, err := run.Salvage(r.fs, dir, p.number, cfg, p.is.Entries)
	if errors.As(err, &damage) {
		p.lost = true
		r.lostRun(p, damage.Reason)
		return nil
	}
	p.salvaged = s
	if err == nil && (r.rebuilt || p.is.Area > uint8(recent.Finished)) {
		err = r.areaOf(p)
	}
	return err
}

var errEnough = errors.New("enough was read")

// areaOf finds out of what area the entries of a run are.
func (r *rescue) areaOf(p *part) error {
	var fits [recent.Finished + 1]int
	n := 0
	err := p.salvaged.Each(func(e run.Entry, _ bool) error {
		for a := range fits {
			if _, err := r.keyOf(recent.Area(a), e); err == nil {
				fits[a]++
			}
		}
		if n++; n == 1000 {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	for a, n := range fits {
		if n > fits[p.is.Area%uint8(len(fits))] {
			p.is.Area = uint8(a)
		}
	}
	return nil
}

// deaths notes who has died in a run. Of several files that say so the oldest one is taken: a newer
// one may name who has died by something that was never durable.
func (r *rescue) deaths(p *part, of *run.Run) error {
	from := []uint64{p.is.Marks}
	if r.rebuilt {
		from = nil
		for number := range r.has.marks {
			from = append(from, number)
		}
		slices.Sort(from)
	} else if p.is.Marks == 0 {
		return nil
	}
	for _, number := range from {
		err := marks.Restore(r.fs, r.path(runsName), number, r.state.Store, []*run.Run{of})
		var damage *disk.DamageError
		if err == nil {
			return nil
		}
		if !errors.As(err, &damage) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if !r.rebuilt {
		r.losses = append(r.losses, Loss{File: marks.Name(r.path(runsName), p.is.Marks), Offset: -1, Again: true,
			What: fmt.Sprintf("who of run %d has died, %d of %d, is not known", p.number, p.is.Entries-p.is.Alive, p.is.Entries)})
	}
	return nil
}

// mend makes the other store, and puts it in force.
func (r *rescue) mend() error {
	if err := r.keepAside(); err != nil {
		return err
	}
	r.next = manifest.State{Store: r.state.Store, Secret: r.state.Secret, NextID: 1, NextQueue: 1}
	if !r.rebuilt {
		r.next.NextID, r.next.NextQueue = r.state.NextID, r.state.NextQueue
	}
	for _, p := range r.parts {
		if err := r.anew(p); err != nil {
			return err
		}
	}
	m := newRestored(r)
	if err := r.log(m, m.gap); err != nil {
		return err
	}
	if err := m.together(); err != nil {
		return err
	}
	if err := m.write(); err != nil {
		return err
	}
	r.next.NextFile = r.file
	if err := manifest.Replace(r.disk.FS, r.dir, r.next); err != nil {
		return err
	}
	return r.clear()
}

// number is that of the next file.
func (r *rescue) number() uint64 {
	r.file++
	return r.file - 1
}

// anew writes a run anew from what can be read of it. Who has died in it is left out, unless there are
// others of which he tells that they are of before.
func (r *rescue) anew(p *part) (err error) {
	if p.salvaged == nil {
		return nil
	}
	number := r.number()
	w, err := run.Create(r.disk.FS, r.path(runsName), number, &run.Config{ID: r.state.Store, Pace: r.pace})
	if err != nil {
		return err
	}
	defer func() {
		if p.run == nil {
			err = errors.Join(err, w.Abort())
		}
	}()
	wrong, n := 0, uint32(0)
	var dead []uint32
	err = p.salvaged.Each(func(e run.Entry, placed bool) error {
		died := placed && e.Pos < p.salvaged.Len() && !p.salvaged.Alive(e.Pos)
		if died && !r.rebuilt {
			return nil
		}
		key, err := r.keyOf(recent.Area(p.is.Area), e)
		if err != nil {
			wrong++
			return nil
		}
		if died {
			dead = append(dead, n)
		}
		n++
		return w.Add(e.Place, key, e.Value)
	})
	if wrong > 0 {
		r.losses = append(r.losses, Loss{File: run.Name(r.path(runsName), p.number), Offset: -1, What: "values that are none", Messages: int64(wrong), Keys: p.keys()})
	}
	if err != nil || n == 0 {
		return err
	}
	made, err := w.Finish()
	if err != nil {
		return err
	}
	for _, pos := range dead {
		made.Kill(pos)
	}
	p.run = made
	p.is = manifest.Run{Number: number, Area: p.is.Area}
	return nil
}

// given notes an id that was given.
func (r *rescue) given(id engine.ID) { r.next.NextID = max(r.next.NextID, uint64(id)+1) }

// keepAside gives all files a second name in a directory of their own. Where the file system cannot, they
// are copied as far as they can be read.
func (r *rescue) keepAside() error {
	now := time.Now
	if r.cfg.Now != nil {
		now = r.cfg.Now
	}
	dir := r.path("damaged-" + now().UTC().Format("20060102T150405.000Z"))
	if err := r.fs.Mkdir(dir); err != nil {
		return err
	}
	made := map[string]bool{dir: true}
	for _, name := range r.has.files {
		rel, err := filepath.Rel(r.dir, name)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		if up := filepath.Dir(to); !made[up] {
			if err := r.fs.Mkdir(up); err != nil {
				return err
			}
			made[up] = true
		}
		err = r.fs.Link(name, to)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) && !disk.IsFull(err) {
			err = r.copy(name, to)
		}
		if err != nil {
			return err
		}
	}
	if err := r.list(filepath.Join(dir, "LOST")); err != nil {
		return err
	}
	for up := range made {
		if err := r.fs.SyncDir(up); err != nil {
			return err
		}
	}
	r.aside = dir
	return r.fs.SyncDir(r.dir)
}

// list writes down what is lost, with all ids that are known.
func (r *rescue) list(name string) (err error) {
	var b strings.Builder
	for _, l := range r.losses {
		b.WriteString(l.String() + "\n")
		if len(l.IDs) > 0 {
			b.WriteString("  ids: " + ids(l.IDs) + "\n")
		}
	}
	f, err := r.fs.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.WriteAt([]byte(b.String()), 0); err != nil {
		return err
	}
	return f.Sync()
}

// copy copies a file.
func (r *rescue) copy(from, to string) (err error) {
	in, err := r.raw.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := r.fs.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	size, err := in.Size()
	if err != nil {
		return err
	}
	b := make([]byte, 256<<10)
	for off := int64(0); off < size; {
		n, err := in.ReadAt(b[:min(int64(len(b)), size-off)], off)
		if n == 0 && err != nil {
			return err
		}
		if _, err := out.WriteAt(b[:n], off); err != nil {
			return err
		}
		if off += int64(n); r.pace(n) != nil {
			return r.pace(0)
		}
	}
	return out.Sync()
}

// clear removes what the new manifest does not name.
func (r *rescue) clear() error {
	c := newChecker(r.disk.FS, r.dir, nil)
	c.state = r.next
	if err := c.leftovers(); err != nil {
		return err
	}
	for _, name := range c.rep.Leftovers {
		if err := remove(r.disk.FS, name); err != nil {
			return err
		}
	}
	return errors.Join(r.fs.SyncDir(r.path(runsName)), r.fs.SyncDir(r.dir))
}
