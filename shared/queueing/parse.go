package queueing

import (
	"errors"
	"fmt"
	"strings"

	"laneway/shared/setting"
)

// ErrSettings is the class of every error of Parse.
var ErrSettings = errors.New("queue settings")

// Parse reads the settings of a gateway, written as behind /queue: a mode,
// debounce:<duration>, cap:<n>, drop:<policy>, each at most once or not at all. What
// is not said is that of Default. Sections "channel/<name>: …" say another mode or
// debounce for one channel. Errors: ErrSettings.
func Parse(text string) (Settings, error) {
	s := Settings{Modes: map[string]string{}, Debounces: map[string]int64{}}
	sections, err := setting.Split(text, setting.Channel)
	if err != nil {
		return Settings{}, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	for _, part := range sections {
		w, err := words(part.Text)
		switch {
		case err != nil:
		case part.Kind == "":
			s.Base = w.Over(Default)
		case w.Cap != nil || w.Drop != "":
			err = errors.New("cap and drop are the same in all channels: put them in front of the first semicolon; a channel has a mode and debounce:<duration>")
		default:
			if w.Mode != "" {
				s.Modes[part.Name] = w.Mode
			}
			if w.Debounce != nil {
				s.Debounces[part.Name] = *w.Debounce
			}
		}
		if err != nil {
			return Settings{}, fmt.Errorf("%w: %w", ErrSettings, part.In(err))
		}
	}
	return s, nil
}

func words(text string) (Words, error) {
	var w Words
	for word := range strings.FieldsSeq(text) {
		used, err := w.Take(word)
		if err != nil {
			return w, err
		}
		if !used || w.Reset {
			return w, fmt.Errorf("%q is none; %s", setting.Clip(word), options)
		}
	}
	return w, nil
}
